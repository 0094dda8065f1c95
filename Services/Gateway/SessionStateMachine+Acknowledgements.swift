import BusMessages
import DeviceProtocol
import SyncModel

// What the device has stored, and whose sync point that is.
extension SessionStateMachine {
    /// The device has these on its disk.
    mutating func received(
        _ ack: Mss_Device_V1_StoredAck, in world: SessionSurroundings
    ) -> [SessionAction] {
        var actions: [SessionAction] = []
        for item in ack.channels {
            guard
                let identity, let kind = SyncModel.ChannelKind(wire: item.kind),
                !kind.needsUser || item.bindNumber == identity.bindNumber
            else { continue }
            let key = ChannelKey(kind: kind, bizType: BizType(item.bizType))
            guard var cursor = cursors[key] else { continue }
            let (upto, freed) = cursor.acknowledge(upto: OplogID(item.upto))
            actions += confirmed(cursor.resends?.acknowledged(upto: OplogID(item.upto), now: world.now), in: cursor)
            cursors[key] = cursor
            windowUsed -= freed
            if let upto { actions.append(record(upto, of: key, cursor, for: identity, in: world)) }
        }
        for number in ack.rereads where rereads.acknowledged(number) {
            actions.append(.finishReread(Int64(bitPattern: number)))
        }
        if rereads.wantsMore() { actions += announce(in: world) }
        return actions + readOn(in: world)
    }

    /// What records a sync point of the session.
    func record(
        _ upto: OplogID, of key: ChannelKey, _ cursor: ChannelCursor, for identity: SessionIdentity,
        in world: SessionSurroundings
    ) -> SessionAction {
        .record(
            channelID: cursor.channelID, receiver: receiver(key, of: identity, in: world),
            acknowledged: cursor.acknowledged, upto: upto)
    }

    /// What the device's own store has acknowledged or claimed of a channel; zero where the server's sync point counts:
    /// a simple device has no store, and one sync point for a user or device is of no store.
    func acknowledged(
        _ state: Mss_Bus_V1_ChannelState, of address: ChannelAddress, in world: SessionSurroundings
    ) -> OplogID {
        let key = ChannelKey(kind: address.target.kind, bizType: address.bizType)
        guard let identity, !identity.isSimple, hasReceiverPerStore(key, of: identity, in: world) else { return .zero }
        return OplogID(state.acknowledged)
    }

    /// Whose sync point of the channel the session moves.
    func receiver(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> SyncReceiver {
        var receiver = SyncReceiver(deviceID: identity.deviceID)
        guard hasReceiverPerStore(key, of: identity, in: world) else { return receiver }
        receiver.storeID = identity.storeID
        #if KNOWN_BAD
            if KnownBad.globalSharedByUsers.isOn { return receiver }
        #endif
        if key.kind == .globalUser { receiver.userID = identity.userID }
        return receiver
    }

    /// Whether each store has a sync point of its own in the channel, not the user or device as a whole.
    func hasReceiverPerStore(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Bool {
        world.rules(of: key, in: identity.instanceID)?.hasReceiverPerStore ?? (key.kind != .device)
    }
}
