import DeviceProtocol
import SyncModel

// What devices share with others of their app and user, and the end of a session that was sent too much.
extension SessionStateMachine {
    /// Takes what a Connect costs the app, and its user. Only for one whose signature is right where one is asked for:
    /// else a stranger could use up what an app's or a user's own devices need (reliability SEC11).
    ///
    /// - Returns: false: there is not enough left.
    static func spend(on connect: Mss_Device_V1_Connect, in world: SessionSurroundings) -> Bool {
        let instanceID = InstanceID(connect.instanceID)
        return world.connects(instanceID, world.now) && spend(on: connect.bind, to: instanceID, in: world)
    }

    /// Takes what a bind costs its user.
    ///
    /// - Returns: false: there is not enough left.
    static func spend(
        on bind: Mss_Device_V1_Bind, to instanceID: InstanceID, in world: SessionSurroundings
    ) -> Bool {
        // One that is no user's id binds nobody, and is not to be remembered either.
        !isIdentifier(bind.userID) || world.binds(UserID(bind.userID), instanceID, world.now)
    }

    /// The app or the user has used up what it may.
    mutating func closeForSharedRate() -> [SessionAction] {
        close(.overloaded, "too many connections or binds; come back later")
    }

    /// The device has used up what it may.
    mutating func refused(_ refusal: RateRefusal) -> [SessionAction] {
        phase == .closed ? [] : close(refusal.code, refusal.reason)
    }

    /// A newer connection of this device has been registered. One that is not registered itself learns from its own
    /// registration whether it is that connection, or an older one.
    mutating func superseded(by epoch: Int64) -> [SessionAction] {
        #if KNOWN_BAD
            if KnownBad.supersededUnregistered.isOn, phase != .open { return [] }
        #endif
        if phase == .opening { newestConnection = max(newestConnection, epoch) }
        guard phase == .open, connectionEpoch < epoch else { return [] }
        return close(.superseded, "a newer connection of this device is open")
    }

    /// An operator ends this device's connection.
    mutating func disconnectedByOperator() -> [SessionAction] {
        guard phase == .opening || phase == .open else { return [] }
        return close(.disconnected, "an operator ended the connection")
    }

    /// This gateway has more devices than others: this one goes where there are fewer, unless data is on its way to it.
    mutating func surplus() -> [SessionAction] {
        guard phase == .open, windowUsed == 0, !isRegistering else { return [] }
        return close(.surplus, "this gateway has more devices than others")
    }

    /// This gateway goes away; the device comes back elsewhere or later.
    mutating func drained() -> [SessionAction] {
        phase == .closed ? [] : close(.draining, "this gateway is shutting down")
    }
}
