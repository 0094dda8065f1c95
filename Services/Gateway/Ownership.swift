import BusMessages

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
    /// Why the device asks to be the owner; nil when it asks for nothing, or when another device became it later.
    private(set) var claim: Claim?
    /// The registration that went out last carries the claim.
    var isAsked = false
    /// A notice has named another owner. If the store then says that this device was the owner all the time, no other
    /// device has stored anything.
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
    /// - Returns: whether the device became the owner meanwhile, so that another one may have stored more and the record
    ///   of the user's sync points counts anew; and whether the device is to be told that it is the owner.
    mutating func learn(_ reply: Mss_Bus_V1_SessionReply) -> (isNew: Bool, tellsDevice: Bool) {
        let before = self
        isHeld = reply.owner
        isInDoubt = false
        if reply.owner {
            claim = .given(epoch: reply.ownershipEpoch)
        } else if case .given(let own)? = claim, reply.ownershipEpoch >= own {
            claim = nil
        }
        // A command may come twice. The second answer then does not say that the first one changed the owner.
        let wasOther = reply.becameOwner || !before.isHeld && before.claim != nil && !before.isInDoubt
        return (reply.owner && wasOther, reply.owner && before.claim == .requested)
    }
}
