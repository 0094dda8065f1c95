import Credentials
import DeliveryHistory
import DeviceProtocol
import SyncModel

@testable import BackendCalls
@testable import MobileSync

/// Reports to the checker, as they happen, the answers of the service and the hand-outs of the apps. It collects
/// faults. A correct run has none.
final class History {
    private struct Bind: Hashable {
        let deviceID: String
        let attempt: Int
        let number: UInt32
    }

    /// A device's position in a channel. An empty device id: the highest position of all devices.
    private struct Reached: Hashable {
        let deviceID: String
        let channel: HistoryTarget
    }

    private struct Connection: Hashable {
        let deviceID: String
        let attempt: Int
    }

    private let simulation: Simulation
    private(set) var checker = HistoryChecker()
    private let instance: Instance
    private let configurations: [String: SyncConfiguration]
    private var addresses: [String: ChannelAddress] = [:]
    /// Pushes that a sync point may pass only after the receiver was sent them.
    private var owed: Set<String> = []
    /// The highest oplog id that each receiver was sent or has reported.
    private var sentUpto: [Reached: Int64] = [:]
    private var sessions: [Bind: BoundUser] = [:]
    private var instances: [String: String] = [:]
    /// The last bind that a connection's gateway received.
    private var binds: [Connection: UInt32] = [:]
    /// The time at which the tenant began to call a session invalid.
    private var invalidSince: [String: Duration] = [:]
    /// Sessions whose revocation was answered and is stored: from then on no checked data may be sent on them.
    private var revokedAt: [String: Duration] = [:]
    private var hasFailedOver = false
    private var failedOverAt: Duration?
    /// Session ids that an attacker invented.
    private var neverValid: Set<String> = []
    /// Pushes whose recall was answered.
    private var recalledAt: [String: Duration] = [:]
    /// The devices to which a frame with a push was written.
    private var carried: Set<Carried> = []
    private var takenOnRecord = TakenOnRecord()
    private var presence = PresenceChecker()
    private var answeredNames: Set<String> = []
    private var isDatabaseClockRight = true
    /// The database's time, which decides validity.
    private let databaseTime: () -> WallTime
    /// A gateway may send an oplog this long after its validity, because it knows the database's clock only from its
    /// last reply.
    private static let clockTolerance = Duration.seconds(2)

    private struct Carried: Hashable {
        let deviceID: String
        let push: String
    }

    init(
        _ simulation: Simulation, instance: Instance, configurations: [SyncConfiguration],
        databaseTime: @escaping () -> WallTime
    ) {
        self.simulation = simulation
        self.databaseTime = databaseTime
        self.instance = instance
        self.configurations = Dictionary(uniqueKeysWithValues: configurations.map { ($0.bizType.text, $0) })
    }

    var faults: [HistoryFault] { checker.faults + presence.faults }

    func fault(_ promise: HistoryFault.Promise, _ text: String) { checker.add(promise, simulation.elapsed, text) }

    private func observe(_ event: HistoryEvent) { checker.observe(event, at: simulation.elapsed) }

    /// Reports an event to the presence checker.
    func observe(_ event: PresenceEvent) { presence.observe(event, at: simulation.elapsed) }

    // MARK: Backends

    /// - Parameter isOwed: whether a sync point may pass the push only after the receiver was sent it.
    func invoked(
        _ name: String, _ address: ChannelAddress, reach: HistoryReach, isOwed: Bool, validFor validity: Duration? = nil
    ) {
        addresses[name] = address
        if isOwed { owed.insert(name) }
        let end = validity.map { simulation.elapsed + $0 }
        observe(.invoked(push: name, to: HistoryTarget(address), reach: reach, validUntil: end))
    }

    /// A backend sends these pushes in one call.
    func called(_ names: [String]) { observe(.inOneCall(pushes: names)) }

    /// A call with a push begins. Checked data does not count for presence: the gateway reports a verdict to the store
    /// once, and after a lost update the store answers NOT_ONLINE until the next one.
    func callBegan(with push: SimulatedPush) {
        let configuration = push.configuration
        guard !configuration.isSingleDevice, !configuration.kind.isGlobal, !configuration.checksSession else { return }
        observe(PresenceEvent.called(push: push.name, to: HistoryTarget(push.address), isShared: false))
    }

    /// Reports to the presence checker which devices the answer to a call says are connected.
    func observePresence(by outcome: PushOutcome, of push: SimulatedPush) {
        let isUnrestricted = push.targeting == Targeting() && push.validUntil == nil
        let answer: PresenceAnswer =
            switch outcome {
            case .stored(_, online: true, _) where isUnrestricted: push.configuration.isPersistent ? .sent : .live
            case .stored(_, online: false, _) where isUnrestricted: .notOnline
            default: .unknown
            }
        observe(PresenceEvent.answered(push: push.name, as: answer))
    }

    /// The clock of the database becomes wrong, or is right again.
    func databaseClock(isRight: Bool) {
        isDatabaseClockRight = isRight
        observe(.databaseClock(isRight: isRight))
    }

    func isAnswered(_ name: String) -> Bool { answeredNames.contains(name) }

    func isRecalled(_ name: String) -> Bool { recalledAt[name] != nil }

    /// A commit succeeded after its process gave up. The push must stay stored.
    func committed(_ name: String, _ id: OplogID) {
        simulation.trace("committed late", id.value, about: name)
        observe(.answered(push: name, id: id.value))
    }

    func maybeStored(_ name: String) { observe(.uncertain(push: name)) }

    /// - Parameter store: the current store. A writer that stored the push before a failover may answer although the
    ///   standby lacks the push.
    func answered(_ name: String, _ id: OplogID, in store: MemoryStore) {
        simulation.trace("answered", id.value, about: name)
        answeredNames.insert(name)
        observe(.answered(push: name, id: id.value))
        if hasFailedOver { forget([name], in: store) }
    }

    /// The answer says that no device received the push.
    func notOnline(_ name: String, _ id: OplogID) {
        simulation.trace("not online", id.value, about: name)
        observe(.notOnline(push: name, id: id.value))
    }

    /// The answer of an attempt that stored a non-persistent push was lost. The writer may have died before it sent a
    /// notice, so the push is not owed.
    func answerWasLost(of name: String) {
        owed.remove(name)
        maybeStored(name)
    }

    // MARK: Recalls

    func recallBegan(_ name: String) {
        owed.remove(name)
        observe(.recallBegan(push: name))
    }

    /// - Parameter store: the current store, which may lack the recall after a failover.
    func recalled(_ name: String, in store: MemoryStore) {
        guard let address = addresses[name], recalledAt[name] == nil,
            store.hasRecalled(ThirdMessageID(name), of: address)
        else { return }
        simulation.trace("recalled", about: name)
        recalledAt[name] = simulation.elapsed
        for device in takenOnRecord.losers(of: name) { observe(.notOnRecord(push: name, device: device)) }
        observe(.recalled(push: name))
    }

    // MARK: Failover

    /// A standby that lacks commits is the primary now, so answered pushes may be lost.
    func failedOver(to store: MemoryStore) {
        hasFailedOver = true
        failedOverAt = simulation.elapsed
        recalledAt = recalledAt.filter { name, _ in
            addresses[name].map { store.hasRecalled(ThirdMessageID(name), of: $0) } ?? false
        }
        observe(.lostCommits)
        revokedAt = revokedAt.filter { store.hasRevoked(SessionDigest.of($0.key)) }
        forget(addresses.keys.sorted(), in: store)
        takenOnRecord.failedOver { name, deviceID in
            guard let address = addresses[name] else { return .zero }
            // The sync point of a device's own channel has no receiver.
            let isOwn = address.target.kind == .device
            return store.syncPoint(of: address, isOwn ? "" : deviceID, isOwn ? "" : "mqtt") ?? .zero
        }
    }

    private func forget(_ names: [String], in store: MemoryStore) {
        for name in names {
            guard let address = addresses[name] else { continue }
            if !store.oplogs(of: address).contains(where: { $0.thirdMessageID.text == name }) {
                observe(.forgotten(push: name))
            }
        }
    }

    // MARK: Devices

    func appBegan(_ deviceID: String) { simulation.trace("app began", about: deviceID) }

    func bound(_ deviceID: String, of instanceID: String, to user: BoundUser?) {
        simulation.trace("bound", about: "\(deviceID) \(user?.userID ?? "")")
        bound(deviceID, of: instanceID, toUser: user?.userID)
    }

    func bound(_ deviceID: String, of instanceID: String, toUser userID: String?) {
        instances[deviceID] = instanceID
        observe(.bound(device: deviceID, instance: instanceID, user: userID))
        observe(PresenceEvent.arrived(device: deviceID, instance: instanceID, user: userID))
    }

    /// A device received the message that its session is open for its user.
    func opened(_ deviceID: String) {
        observe(HistoryEvent.opened(device: deviceID))
        observe(PresenceEvent.opened(device: deviceID))
    }

    /// A device has lost, or left, its connection.
    func lost(_ deviceID: String) {
        observe(.closed(device: deviceID))
        observe(PresenceEvent.lost(device: deviceID))
    }

    /// The device that owns a user now has another user.
    func ownerIsAway(from address: ChannelAddress) { observe(.waitsForOwner(HistoryTarget(address))) }

    func ownerIsForgotten(of address: ChannelAddress) { observe(.ownerForgotten(HistoryTarget(address))) }

    /// A device has sent a frame.
    func deviceSent(_ packet: Mss_Device_V1_Packet, by deviceID: String, over attempt: Int) {
        if case .connect(let connect)? = packet.body {
            recordReported(connect.syncPoints, by: deviceID, user: nil, of: connect.instanceID)
        }
        guard let bind = Self.bind(of: packet) else { return }
        recordReported(bind.syncPoints, by: deviceID, user: bind.userID, of: instances[deviceID] ?? "")
        sessions[Bind(deviceID: deviceID, attempt: attempt, number: bind.bindNumber)] = BoundUser(
            userID: bind.userID, sessionID: bind.sessionID)
    }

    /// A gateway received a frame.
    func gatewayReceived(_ packet: Mss_Device_V1_Packet, from deviceID: String, over attempt: Int) {
        guard let bind = Self.bind(of: packet) else { return }
        binds[Connection(deviceID: deviceID, attempt: attempt)] = bind.bindNumber
    }

    private static func bind(of packet: Mss_Device_V1_Packet) -> Mss_Device_V1_Bind? {
        switch packet.body {
        case .connect(let connect): connect.bind
        case .bind(let bind): bind
        default: nil
        }
    }

    /// A gateway has written a frame. Checked data may go only to sessions that are or recently were valid (I7), and
    /// not to another user's session (I6).
    func gatewaySent(_ packet: Mss_Device_V1_Packet, to deviceID: String, over attempt: Int) {
        guard case .push(let push)? = packet.body else { return }
        let current = binds[Connection(deviceID: deviceID, attempt: attempt)] ?? 0
        for batch in push.batches {
            guard let kind = SyncModel.ChannelKind(wire: batch.kind) else { continue }
            checkValidity(of: batch, to: deviceID)
            let user = sessions[Bind(deviceID: deviceID, attempt: attempt, number: batch.bindNumber)]?.userID
            reach(batch.upto, by: deviceID, channel(kind, batch.bizType, of: deviceID, user: user))
            guard kind.needsUser else { continue }
            guard batch.bindNumber == current,
                let session = sessions[Bind(deviceID: deviceID, attempt: attempt, number: batch.bindNumber)]
            else {
                fault(
                    .addressed, "\(deviceID) is sent data of bind \(batch.bindNumber) while bind \(current) is current")
                continue
            }
            if !batch.entries.isEmpty { check(batch.bizType, on: session.sessionID, of: deviceID) }
        }
        for batch in push.batches { for entry in batch.entries { wrote(entry.thirdMessageID, to: deviceID) } }
    }

    /// A push is written to a device's socket.
    private func wrote(_ name: String, to deviceID: String) {
        guard !name.isEmpty else { return }
        if let at = recalledAt[name] {
            fault(.recalled, "\(deviceID) is sent \(name) \(simulation.elapsed - at) after the recall's answer")
        }
        carried.insert(Carried(deviceID: deviceID, push: name))
    }

    /// A gateway has written a publication to an MQTT client's socket.
    func published(
        _ payload: [UInt8], bizType: String, oplogID: Int64, to deviceID: String, of userID: String,
        on sessionID: String
    ) {
        guard let configuration = configurations[bizType] else { return }
        let name = String(decoding: payload, as: UTF8.self).split(separator: "|").last.map(String.init) ?? ""
        simulation.trace("publishes", oplogID, about: "\(deviceID) \(name)")
        reach(oplogID, by: deviceID, channel(configuration.kind, bizType, of: deviceID, user: userID))
        check(bizType, on: sessionID, of: deviceID)
        wrote(name, to: deviceID)
    }

    private func channel(
        _ kind: SyncModel.ChannelKind, _ bizType: String, of deviceID: String, user: String?
    ) -> HistoryTarget {
        let target =
            switch kind {
            case .user: user ?? ""
            case .device: deviceID
            case .globalUser, .globalDevice: ""
            }
        return HistoryTarget(instance: instances[deviceID] ?? "", kind: kind, target: target, bizType: bizType)
    }

    private func recordReported(
        _ points: [Mss_Device_V1_SyncPoint], by deviceID: String, user: String?, of instanceID: String
    ) {
        instances[deviceID] = instanceID
        for point in points {
            // The server ignores reported positions of single-device channels.
            guard let kind = SyncModel.ChannelKind(wire: point.kind),
                configurations[point.bizType]?.isSingleDevice != true
            else { continue }
            reach(point.oplogID, by: deviceID, channel(kind, point.bizType, of: deviceID, user: user))
        }
    }

    private func reach(_ upto: Int64, by deviceID: String, _ channel: HistoryTarget) {
        for device in [deviceID, ""] {
            let place = Reached(deviceID: device, channel: channel)
            sentUpto[place] = max(sentUpto[place] ?? 0, upto)
        }
    }

    private func checkValidity(of batch: Mss_Device_V1_ChannelBatch, to deviceID: String) {
        guard isDatabaseClockRight else { return }
        let now = databaseTime().milliseconds - Self.clockTolerance.wholeMilliseconds
        for entry in batch.entries where entry.validUntilMs > 0 && entry.validUntilMs <= now {
            fault(.attempted, "\(deviceID) is sent the expired push \(entry.thirdMessageID)")
        }
    }

    /// A sync point was recorded (I8).
    func advanced(_ advanced: SimulatedDatabase.Advanced, in store: MemoryStore) {
        let (address, deviceID, before, after) = advanced
        // The sync point of a device's own channel names no device.
        let client = address.target.kind == .device ? address.target.target : deviceID
        takenOnRecord.advanced(client, upto: after) { name in
            addresses[name] == address && !store.hasRecalled(ThirdMessageID(name), of: address)
        }
        if after < before {
            fault(.bounded, "the sync point of \(deviceID) in \(address) falls from \(before) to \(after)")
        }
        let reached = sentUpto[Reached(deviceID: deviceID, channel: HistoryTarget(address))] ?? 0
        let passed = store.oplogs(of: address).first {
            $0.id.value > reached && $0.id <= after && owed.contains($0.thirdMessageID.text)
        }
        guard let passed else { return }
        let name = passed.thirdMessageID.text
        fault(.bounded, "\(deviceID) has the sync point of \(name) in \(address) but was sent up to \(reached)")
    }

    /// A gateway sends a batch again (I10).
    func checkRepeat(of batch: Mss_Device_V1_ChannelBatch, recorded: Int, to deviceID: String) {
        let repeats = Int(batch.entries.map(\.attempt).max() ?? 1) - 1
        if repeats > recorded, !hasFailedOver {
            fault(.counted, "\(deviceID) is sent resend \(repeats) of \(batch.bizType), but \(recorded) are recorded")
        }
        if repeats > Limits.resendRepeats {
            fault(.counted, "\(deviceID) is sent resend \(repeats) of \(batch.bizType)")
        }
    }

    private func check(_ bizType: String, on sessionID: String, of deviceID: String) {
        guard let configuration = configurations[bizType], configuration.checksSession else { return }
        if neverValid.contains(sessionID) { observe(.stale(device: deviceID, bizType: bizType, session: sessionID)) }
        guard let since = invalidSince[sessionID] else { return }
        let lifetime = configuration.verdictLifetime ?? instance.verdictLifetime
        if simulation.elapsed > since + lifetime || revokedAt[sessionID] != nil {
            observe(.stale(device: deviceID, bizType: bizType, session: sessionID))
        }
    }

    func handedOut(_ oplog: SyncOplog, to deviceID: String, of instanceID: String) {
        simulation.trace("handed out", oplog.oplogID, Int64(oplog.attempt), about: "\(deviceID) \(oplog.bizType)")
        if let recalls = oplog.recalls {
            let from = target(of: oplog, on: deviceID, of: instanceID)
            return observe(.tombstone(device: deviceID, from: from, id: oplog.oplogID, recalls: recalls))
        }
        let name = oplog.thirdMessageID ?? ""
        if recalledAt[name] != nil, !carried.contains(Carried(deviceID: deviceID, push: name)) {
            fault(.recalled, "\(deviceID) received \(name), which was recalled before it was sent to the device")
        }
        observe(PresenceEvent.given(push: name, device: deviceID))
        observe(
            .given(
                HistoryHandOut(
                    device: deviceID, from: target(of: oplog, on: deviceID, of: instanceID), id: oplog.oplogID,
                    push: oplog.thirdMessageID ?? "", payload: String(decoding: oplog.payload, as: UTF8.self),
                    attempt: oplog.attempt)))
    }

    /// A simple client received an entry of its own channel for the first time, which counts as confirmed.
    func simpleDeviceReceived(
        _ entry: Mss_Device_V1_Entry, of bizType: String, on deviceID: String, of instanceID: String
    ) {
        let from = HistoryTarget(instance: instanceID, kind: .device, target: deviceID, bizType: bizType)
        guard entry.recalls == 0 else {
            return recordTombstone(entry.oplogID, recalls: entry.recalls, from: from, on: deviceID)
        }
        observe(
            .given(
                HistoryHandOut(
                    device: deviceID, from: from, id: entry.oplogID, push: entry.thirdMessageID,
                    payload: String(decoding: entry.payload, as: UTF8.self), attempt: 1)))
        observe(.confirmed(device: deviceID, from: from, id: entry.oplogID))
    }

    /// A client without the library received a tombstone, which counts as confirmed.
    private func recordTombstone(_ id: Int64, recalls: Int64, from: HistoryTarget, on deviceID: String) {
        observe(.tombstone(device: deviceID, from: from, id: id, recalls: recalls))
        observe(.confirmed(device: deviceID, from: from, id: id))
    }

    /// An MQTT client received a tombstone for the first time.
    func mqttClientReceivedTombstone(
        _ id: Int64, recalls: Int64, bizType: String, on deviceID: String, of instanceID: String, user: String
    ) {
        let kind = configurations[bizType]?.kind ?? .device
        let from = HistoryTarget(
            instance: instanceID, kind: kind, target: kind == .device ? deviceID : user, bizType: bizType)
        // The gateway sends a client the tombstone of an unrecorded push when the client's position has passed the
        // push. That can be out of order.
        for name in takenOnRecord.lost(OplogID(recalls), by: deviceID)
        where addresses[name].map({ HistoryTarget($0).ofEverybody }) == from.ofEverybody {
            observe(.notOnRecord(push: name, device: deviceID))
        }
        recordTombstone(id, recalls: recalls, from: from, on: deviceID)
    }

    /// An MQTT client connects.
    func mqttClientConnects(_ deviceID: String) {
        for name in takenOnRecord.connects(deviceID) where recalledAt[name] != nil {
            observe(.notOnRecord(push: name, device: deviceID))
        }
    }

    /// An MQTT client received a push, perhaps again.
    func awaitsRecord(of name: String, oplogID: Int64, on deviceID: String) {
        takenOnRecord.received(name, OplogID(oplogID), on: deviceID)
    }

    /// An MQTT client received a push for the first time, which counts as confirmed.
    func mqttClientReceived(
        _ payload: String, as name: String, oplogID: Int64, bizType: String, on deviceID: String, of instanceID: String,
        user: String
    ) {
        let kind = configurations[bizType]?.kind ?? .device
        let target = kind == .device ? deviceID : user
        let from = HistoryTarget(instance: instanceID, kind: kind, target: target, bizType: bizType)
        observe(
            .given(
                HistoryHandOut(
                    device: deviceID, from: from, id: oplogID, push: name, payload: payload, attempt: 1)))
        observe(.confirmed(device: deviceID, from: from, id: oplogID))
    }

    func confirmed(_ oplog: SyncOplog, by deviceID: String, of instanceID: String) {
        let from = target(of: oplog, on: deviceID, of: instanceID)
        observe(.confirmed(device: deviceID, from: from, id: oplog.oplogID))
    }

    /// The channel as the client names it.
    private func target(of oplog: SyncOplog, on deviceID: String, of instanceID: String) -> HistoryTarget {
        instances[deviceID] = instanceID
        let kind = configurations[oplog.bizType]?.kind ?? .device
        // The client has a global user channel once for each user.
        let own = channel(kind == .globalUser ? .user : kind, oplog.bizType, of: deviceID, user: oplog.userID)
        return HistoryTarget(instance: own.instance, kind: kind, target: own.target, bizType: own.bizType)
    }

    // MARK: Tenants

    func becameInvalid(_ sessionID: String) {
        if invalidSince[sessionID] == nil { invalidSince[sessionID] = simulation.elapsed }
    }

    /// An attacker invented this session id.
    func forged(_ sessionID: String) { neverValid.insert(sessionID) }

    /// - Parameter store: the current store, which may lack the revocation after a failover.
    func revoked(_ sessionID: String, in store: MemoryStore) {
        guard store.hasRevoked(SessionDigest.of(sessionID)) else { return }
        revokedAt[sessionID] = revokedAt[sessionID] ?? simulation.elapsed
    }

    func isValid(_ sessionID: String) -> Bool {
        invalidSince[sessionID] == nil && !neverValid.contains(sessionID)
    }

    // MARK: The end

    /// Whether no push is owed and all handed-out oplogs are confirmed.
    var isSettled: Bool {
        checker.expire(at: simulation.elapsed)
        return checker.owed == 0 && checker.unconfirmed.isEmpty
    }

    /// Checks at the end of a run that nothing is owed or unconfirmed, and that answered pushes are stored once, in
    /// order.
    func end(_ store: MemoryStore) {
        // A non-persistent push that has not arrived by now never arrives.
        presence.check(at: simulation.elapsed + PresenceChecker.longestDelivery)
        checker.expectNothingOwed(at: simulation.elapsed)
        for (device, ids) in checker.unconfirmed { fault(.delivered, "\(device) has not confirmed \(ids)") }
        var stored: [(push: String, target: HistoryTarget, id: Int64)] = []
        for address in Set(addresses.values) {
            let target = HistoryTarget(address)
            stored += store.oplogs(of: address).map { ($0.thirdMessageID.text, target, $0.id.value) }
        }
        checker.compare(stored: stored, at: simulation.elapsed)
    }
}

extension HistoryTarget {
    /// The channel as the history names it.
    init(_ address: ChannelAddress) {
        let target = address.target
        self.init(
            instance: target.instanceID.text, kind: target.kind, target: target.target, bizType: address.bizType.text)
    }
}
