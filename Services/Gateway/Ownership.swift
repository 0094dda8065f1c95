/// How the present bind stands to the user's single-device data (spec D8); pure.
///
/// Ownership moves with a registration. Where owners are checked, that is one after the first valid verdict.
struct Ownership {
    /// Why this device is to be the owner.
    enum Claim: Hashable, Sendable {
        /// The app asked for the bind; the device asks again on its next connection until it is told that it owns.
        case requested
        /// The instance gives ownership to every bind.
        case latestConnection
        /// The store gave it under this epoch. It counts where the store has an older owner, or none, as it may after a
        /// failover that lost commits.
        case given(epoch: Int64)
    }

    /// The last word of the store on whether this device owns the bound user.
    private(set) var isHeld = false
    /// Nil: the device claims nothing, or another device became the owner later.
    private(set) var claim: Claim?
    /// The registration that went out last carries the claim.
    var isAsked = false
    /// The ownership is only in doubt: if the device still owns the user, nobody else has stored anything meanwhile.
    private var isInDoubt = false

    init(claim: Claim? = nil) {
        self.claim = claim
    }

    /// The device is not the owner, as far as the store has said, and is to be.
    var isWanted: Bool { claim != nil && !isHeld }

    /// Another device may own the user now.
    mutating func doubt() {
        isHeld = false
        isInDoubt = true
    }

    /// The store has answered a registration.
    ///
    /// - Parameters:
    ///   - isOwner: this device owns the user.
    ///   - epoch: under which the owner on record became it; 0: nobody is.
    /// - Returns: whether the device became the owner with this answer, and whether it is to be told.
    mutating func learn(isOwner: Bool, epoch: Int64) -> (isNew: Bool, tellsDevice: Bool) {
        let before = self
        isHeld = isOwner
        isInDoubt = false
        if isOwner {
            claim = .given(epoch: epoch)
        } else if case .given(let own)? = claim, epoch > own {
            claim = nil
        }
        return (
            isOwner && !before.isHeld && before.claim != nil && !before.isInDoubt,
            isOwner && before.claim == .requested
        )
    }
}
