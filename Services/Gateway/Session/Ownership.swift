import BusMessages
import DeviceProtocol

/// The ownership of a user's single-device data by the current bind (D8); pure.
///
/// Ownership moves with a registration. Where owners are checked, this is a registration after the first valid verdict.
struct Ownership {
    /// The reason for an ownership request.
    enum Claim: Hashable, Sendable {
        /// The app requested the bind. The device repeats the request on its next connections until it receives
        /// `OwnershipTaken`.
        case requested
        /// In this instance every bind takes ownership.
        case latestConnection
        /// The store gave ownership with this epoch. The request succeeds if the store has an older owner or none, for
        /// example after a failover that lost commits.
        case given(epoch: Int64)
    }

    /// Whether this device owns the bound user's data, by the store's last reply.
    private(set) var isHeld = false
    /// The current ownership request; nil: none, or another device became the owner later.
    private(set) var claim: Claim?
    /// The last registration carries the ownership request.
    var isAsked = false
    /// A notice named another owner. If the store then replies that this device has been the owner all the time, no
    /// other device has stored anything.
    private var isInDoubt = false

    init(claim: Claim? = nil) {
        self.claim = claim
    }

    /// The ownership at the beginning of a bind.
    ///
    /// - Parameter latestConnectionOwns: in this instance every bind takes ownership.
    init(of bind: Mss_Device_V1_Bind, latestConnectionOwns: Bool) {
        guard !bind.userID.isEmpty else { return }
        if bind.requestedByApp {
            claim = .requested
        } else if latestConnectionOwns {
            claim = .latestConnection
        } else if bind.ownershipEpoch > 0 {
            claim = .given(epoch: bind.ownershipEpoch)
        }
    }

    /// The device requests ownership and does not have it yet.
    var isWanted: Bool { claim != nil && !isHeld }

    /// Records that another device may own the user's data now.
    mutating func doubt() {
        isHeld = false
        isInDoubt = true
    }

    /// Applies the store's reply to a registration.
    ///
    /// - Returns: `isNew`: the device became the owner, so another device may have stored more, and the sync points in
    ///   the reply count. `tellsDevice`: the device must receive `OwnershipTaken`.
    mutating func apply(_ reply: Mss_Bus_V1_SessionReply) -> (isNew: Bool, tellsDevice: Bool) {
        let before = self
        isHeld = reply.owner
        isInDoubt = false
        if reply.owner {
            claim = .given(epoch: reply.ownershipEpoch)
        } else if case .given(let own)? = claim, reply.ownershipEpoch >= own {
            claim = nil
        }
        // A command may be executed twice. The second reply then does not say that the first execution changed the
        // owner.
        let wasOther = reply.becameOwner || !before.isHeld && before.claim != nil && !before.isInDoubt
        return (reply.owner && wasOther, reply.owner && before.claim == .requested)
    }
}
