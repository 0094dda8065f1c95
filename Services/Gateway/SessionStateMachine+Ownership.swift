import DeviceProtocol
import SwiftProtobuf
import SyncModel

// Who receives a user's single-device data (spec D8): the device on which the app last bound the user.
extension SessionStateMachine {
    /// What a bind wants.
    func claim(of bind: Mss_Device_V1_Bind, in world: SessionSurroundings) -> OwnershipClaim {
        guard !bind.userID.isEmpty, let instanceID = identity?.instanceID else { return OwnershipClaim() }
        let latestConnectionOwns = world.instance(instanceID)?.latestConnectionOwns ?? false
        #if KNOWN_BAD
            let isRequested = bind.requestedByApp || KnownBad.reconnectTakesOwnership.isOn
        #else
            let isRequested = bind.requestedByApp
        #endif
        return OwnershipClaim(isRequestedByApp: isRequested, latestConnectionOwns: latestConnectionOwns)
    }

    /// Whether the registration that goes out now makes this device the owner. The store refuses a registration under a
    /// lease that is lost.
    func takesOwnership(in world: SessionSurroundings) -> Bool {
        guard claim.isOpen, let identity else { return false }
        #if KNOWN_BAD
            if KnownBad.unverifiedTakesOwnership.isOn { return true }
        #endif
        switch withholding(.ownership, of: identity, in: world) {
        case nil, .awaitsWord: return true
        case .noLease, .awaitsFilter, .notEligible: return false
        }
    }

    /// Takes the ownership that the bind asked for, once nothing stands in its way any more.
    mutating func takeOwnership(in world: SessionSurroundings) -> [SessionAction] {
        guard !(isRegistering && claim.isAsked), takesOwnership(in: world) else { return [] }
        return announce(in: world)
    }

    /// The store says that this device owns the user: the device need not ask for it again.
    mutating func closeClaim(of identity: SessionIdentity) -> [SessionAction] {
        guard claim.close() else { return [] }
        return [.send(.with { $0.ownershipTaken.bindNumber = identity.bindNumber })]
    }

    /// Somebody says that another device is the owner, which may be of before this one became it: the store is asked.
    mutating func loseOwnership(in world: SessionSurroundings) -> [SessionAction] {
        guard ownsUser else { return [] }
        ownsUser = false
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
