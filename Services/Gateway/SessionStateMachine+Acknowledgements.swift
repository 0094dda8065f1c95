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
            windowUsed -= cursor.acknowledge(upto: OplogID(item.upto))
            cursor.confirm(upto: OplogID(item.upto), now: world.now)
            cursors[key] = cursor
            actions += report(of: key, in: world)
        }
        for number in ack.rereads { rereads.acknowledged(number) }
        actions += reportRereads(in: world)
        if rereads.wantsMore() { actions += announce(in: world) }
        return actions + readOn(in: world)
    }

    /// Reports what the device did with a channel's data, once it may (spec D16): how far it has stored it, and of a
    /// simple device what its app was given.
    mutating func report(of key: ChannelKey, in world: SessionSurroundings) -> [SessionAction] {
        guard let identity, let cursor = cursors[key], cursor.owesReport, mayReport(key, of: identity, in: world),
            cursor.countsClaim == countsClaim(key, of: identity, in: world),
            let (upto, confirmed) = cursors[key]?.takeReport()
        else { return [] }
        var actions: [SessionAction] = []
        if !confirmed.isEmpty {
            // A simple device's acknowledgement is its app's too (spec D13); nobody waits for an answer.
            let found = [cursor.channelID: confirmed.map(\.value)]
            actions.append(
                .confirm(
                    ConfirmedReport(
                        id: nil, deviceID: identity.deviceID, userID: identity.userID, confirmed: found)))
        }
        if let upto { actions.append(record(upto, of: key, cursor, for: identity, in: world)) }
        return actions
    }

    /// Reports what could not be reported when the device said it.
    mutating func reportOwed(in world: SessionSurroundings) -> [SessionAction] {
        let owing = cursors.filter { $0.value.owesReport }.map(\.key)
        return owing.flatMap { report(of: $0, in: world) } + reportRereads(in: world)
    }

    private mutating func reportRereads(in world: SessionSurroundings) -> [SessionAction] {
        guard let identity, rereads.owesReport else { return [] }
        var rereads = rereads
        let numbers = rereads.takeReport { mayReport($0, of: identity, in: world) }
        self.rereads = rereads
        return numbers.map { .finishReread(Int64(bitPattern: $0)) }
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

    /// Whether the position that the device claims counts in the channel: there it harms nobody but the device. The sync
    /// point of a single-device channel is the user's: the recorded one counts (spec D8). Nil: there is no configuration.
    func countsClaim(
        _ key: ChannelKey, of identity: SessionIdentity, in world: SessionSurroundings
    ) -> Bool? {
        guard key.kind == .user else { return true }
        #if KNOWN_BAD
            if KnownBad.claimMovesSharedPoint.isOn { return true }
        #endif
        return world.rules(of: key, in: identity.instanceID).map { !$0.isSingleDevice }
    }
}
