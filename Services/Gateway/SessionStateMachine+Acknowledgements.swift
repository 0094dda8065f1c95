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
        let perStore = hasReceiverPerStore(key, of: identity, in: world)
        return .record(
            channelID: cursor.channelID, deviceID: identity.deviceID, storeID: perStore ? identity.storeID : nil,
            upto: upto)
    }

    /// Whether each store has a sync point of its own in the channel, not the user or device as a whole.
    func hasReceiverPerStore(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Bool {
        world.configuration(identity.instanceID, key.bizType)?.hasReceiverPerStore ?? (key.kind != .device)
    }
}
