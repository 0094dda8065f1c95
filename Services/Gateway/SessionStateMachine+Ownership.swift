import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Who receives a user's single-device data (spec D8): the device on which the app last bound the user.
extension SessionStateMachine {
    /// How a bind begins.
    func ownership(of bind: Mss_Device_V1_Bind, in world: SessionSurroundings) -> Ownership {
        guard !bind.userID.isEmpty, let instanceID = identity?.instanceID else { return Ownership() }
        #if KNOWN_BAD
            let isRequested = bind.requestedByApp || KnownBad.reconnectTakesOwnership.isOn
        #else
            let isRequested = bind.requestedByApp
        #endif
        if isRequested { return Ownership(claim: .requested) }
        if world.instance(instanceID)?.latestConnectionOwns == true { return Ownership(claim: .latestConnection) }
        return Ownership(claim: bind.ownershipEpoch > 0 ? .given(epoch: bind.ownershipEpoch) : nil)
    }

    /// Whether the registration that goes out now may carry the claim. The store refuses a registration under a lease
    /// that is lost.
    func mayClaimOwnership(in world: SessionSurroundings) -> Bool {
        guard ownership.claim != nil, let identity else { return false }
        #if KNOWN_BAD
            if KnownBad.unverifiedTakesOwnership.isOn { return true }
        #endif
        switch withholding(.ownership, of: identity, in: world) {
        case nil, .awaitsWord: return true
        case .noLease, .awaitsFilter, .notEligible: return false
        }
    }

    /// Claims the ownership that the bind is to have, once nothing stands in its way any more.
    mutating func takeOwnership(in world: SessionSurroundings) -> [SessionAction] {
        guard ownership.isWanted, !(isRegistering && ownership.isAsked), mayClaimOwnership(in: world) else {
            return []
        }
        return announce(in: world)
    }

    /// Somebody says that another device is the owner, which may be of before this one became it: the store is asked.
    mutating func loseOwnership(in world: SessionSurroundings) -> [SessionAction] {
        guard ownership.isHeld else { return [] }
        ownership.doubt()
        return announce(in: world)
    }

    /// Something outside changed that rules look at: configurations, or the lease.
    mutating func surroundingsChanged(in world: SessionSurroundings) -> [SessionAction] {
        if isRegistering { rulesChanged = true }
        return readOn(in: world) + registerForFilters(in: world) + registerForReceivers(in: world)
            + takeOwnership(in: world)
    }

    /// Whose sync points channels have is another thing now: the store is asked where they stand.
    private mutating func registerForReceivers(in world: SessionSurroundings) -> [SessionAction] {
        guard let identity else { return [] }
        let isOther = cursors.contains { key, cursor in
            countsClaim(key, of: identity, in: world).map { $0 != cursor.countsClaim } ?? false
        }
        return isOther ? announce(in: world) : []
    }
}
