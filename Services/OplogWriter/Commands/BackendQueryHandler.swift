import AMQP
import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Executes the backend queries and commands of operators: traces, dry runs, recalls, devices, dead letters, roll-outs.
/// Each change writes its audit record (C9). `BackendCommandHandler` lets backends use a part of it.
struct BackendQueryHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_OperationCommand

    static let queue = CommandQueue.people
    static let groupBodies = 8
    static let limit = Duration.seconds(5)
    /// The largest number of rows in one list.
    private static let listMax = 1_000
    /// The time limit for the gateways' replies to a recall or a revocation; shorter than the caller's own limit.
    private static let noticeLimit = Duration.seconds(3)

    let bus: MessageBus
    let stores: StoreLayout
    let logger: Logger

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_OperationCommands.elements(of: body) }

    static func connection(
        _ configuration: PostgresConfiguration, stores: StoreLayout?, logger: Logger
    ) -> PostgresConnection {
        SyncDatabase.operatorConnection(configuration, stores: stores, logger: logger)
    }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        answerEach(tasks, \.correlation) { command, replyTo throws(PostgresError) in
            // A command concerns one instance. Row-level security hides the rows of all others (SEC10).
            try connection.run(SyncDatabase.bind(to: InstanceID(command.instanceID)), within: Self.limit)
            if case .recall(let name)? = command.body {
                try recall(name, for: command, replyTo: replyTo, on: connection)
                return nil
            }
            if case .revokeSessions(let sessions)? = command.body {
                try revoke(sessions, for: command, replyTo: replyTo, on: connection)
                return nil
            }
            if case .changeRollout(let change)? = command.body, case .stop? = change.way {
                try stop(Rollout.Name(bus: change.name), for: command, replyTo: replyTo, on: connection)
                return nil
            }
            return try answer(command, on: connection)
        }
    }

    private func answer(
        _ command: Command, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        switch command.body {
        case .trace(let request):
            let trace = try trace(request, on: connection)
            return .with { $0.trace = trace }
        case .dryRun(let append):
            let trace = try dryRun(append, on: connection)
            return .with { $0.trace = trace }
        case .devices(let request):
            let query = ConnectedDeviceStore.devices(
                of: InstanceID(request.instanceID), userID: request.userID.isEmpty ? nil : UserID(request.userID),
                after: DeviceID(request.afterDeviceID), limit: min(max(Int(request.limit), 1), Self.listMax))
            let devices = try connection.run(query, within: Self.limit)
            return .with { $0.devices.devices = devices.map(\.bus) }
        case .deadLetters(let request):
            let query = DeadLetterStore.letters(
                of: InstanceID(request.instanceID), bizType: request.bizType.isEmpty ? nil : BizType(request.bizType),
                limit: min(max(Int(request.limit), 1), Self.listMax))
            let letters = try connection.run(query, within: Self.limit)
            return .with { $0.deadLetters.letters = letters.map(\.bus) }
        case .replay(let request):
            return try replay(request, by: command.by, on: connection)
        case .device(let request): return try device(request, on: connection)
        case .disconnect(let request): return try disconnect(request, by: command.by, on: connection)
        case .recordPush(let push): return try record(push, by: command.by, on: connection)
        case .startRollout(let request): return try start(request, by: command.by, on: connection)
        case .changeRollout(let request): return try change(request, by: command.by, on: connection)
        case .rollouts(let request): return try rollouts(request, on: connection)
        case .recall, .revokeSessions, nil:
            return .with { $0.failure.reason = "this build does not know the command" }
        }
    }

    // MARK: Trace

    private func trace(
        _ request: Mss_Bus_V1_TraceRequest, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_TraceReply {
        let name = TraceStore.Name(bus: request.oplog)
        guard let found = try connection.run(TraceStore.find(name), within: Self.limit) else { return .init() }
        var base = DeliveryTrace(oplog: found.oplog)
        base.recalledAt = found.recalledAt
        try read(&base, name.instanceID, name.bizType, found.target.kind, on: connection)
        if !found.isOfConfiguration { base.configuration = nil }
        let receivers = TraceStore.receivers(
            of: ChannelAddress(target: found.target, bizType: name.bizType), channelID: found.channelID,
            oplogID: found.oplog.id,
            device: request.deviceID.isEmpty ? nil : DeviceID(request.deviceID))
        var reply = try answer(base, receivers, on: connection)
        if found.target.kind.isGlobal, request.deviceID.isEmpty {
            let tally = try connection.run(
                TraceStore.tally(channelID: found.channelID, oplogID: found.oplog.id), within: Self.limit)
            reply.counts = tally.sorted { $0.key.rawValue < $1.key.rawValue }.map { .init($0.key, $0.value) }
        }
        reply.channelID = found.channelID
        reply.global = found.target.kind.isGlobal
        var oplog = found.oplog
        if request.withPayload {
            let query = TraceStore.payload(channelID: found.channelID, oplogID: oplog.id)
            oplog.payload = try connection.run(query, within: Self.limit) ?? []
        }
        reply.oplog = oplog.bus
        reply.recalledAtMs = found.recalledAt?.milliseconds ?? 0
        return reply
    }

    /// The delivery states that a push would have now, by the same rules as a real push.
    private func dryRun(
        _ append: Mss_Bus_V1_AppendCommand, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_TraceReply {
        guard let target = TargetAddress(bus: append.target) else { return .init() }
        let bizType = BizType(append.bizType)
        let channel = ChannelAddress(target: target, bizType: bizType)
        var oplog = Oplog(bus: append.oplog)
        let known = TraceStore.Name(
            instanceID: target.instanceID, bizType: bizType, target: target.target,
            key: .thirdMessageID(oplog.thirdMessageID))
        if let found = try connection.run(TraceStore.find(known), within: Self.limit), found.isOfConfiguration {
            return .with {
                $0.duplicate = true
                $0.channelID = found.channelID
                $0.oplog = found.oplog.bus
            }
        }
        oplog.id = OplogID(.max)
        let now = try connection.run(DatabaseTime.now, within: Self.limit)
        var base = DeliveryTrace(oplog: oplog)
        try read(&base, target.instanceID, bizType, target.kind, on: connection)
        oplog.createdAt = now
        let latest = oplog.createdAt + (base.instance?.retention ?? Limits.retention)
        oplog.validUntil = oplog.validUntil.milliseconds == 0 ? latest : min(oplog.validUntil, latest)
        base.oplog = oplog
        base.oplog.isPersistent = base.configuration?.isPersistent ?? true
        guard target.kind.isGlobal else {
            let receivers = TraceStore.receivers(of: channel, channelID: 0, oplogID: oplog.id, device: nil)
            var reply = try answer(base, receivers, on: connection)
            reply.oplog = Self.validity(of: oplog)
            return reply
        }
        let groups = try connection.run(
            TraceStore.deviceGroups(of: channel, share: oplog.targeting.share), within: Self.limit)
        var counts: [DeliveryState: Int64] = [:]
        for group in groups {
            var one = base
            one.presence = group.presence
            one.slot = group.presence.traits.slot
            counts[one.state(now: now).state, default: 0] += group.devices
        }
        return .with {
            $0.oplog = Self.validity(of: oplog)
            $0.state = Int32(base.state(now: now).state.rawValue)
            $0.counts = counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { .init($0.key, $0.value) }
        }
    }

    private static func validity(of oplog: SyncModel.Oplog) -> Mss_Bus_V1_Oplog {
        .with {
            $0.validUntilMs = oplog.validUntil.milliseconds
            $0.createdAtMs = oplog.createdAt.milliseconds
        }
    }

    private func read(
        _ trace: inout DeliveryTrace, _ instanceID: InstanceID, _ bizType: BizType, _ kind: SyncModel.ChannelKind,
        on connection: PostgresConnection
    ) throws(PostgresError) {
        trace.instance = try connection.run(ControlStore.instance(instanceID), within: Self.limit)
        let configuration = try connection.run(ControlStore.configuration(instanceID, bizType), within: Self.limit)
        trace.configuration = configuration?.scoped(to: kind)
    }

    private func answer(
        _ base: DeliveryTrace, _ receivers: Query<[TraceStore.Receiver]>, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_TraceReply {
        let now = try connection.run(DatabaseTime.now, within: Self.limit)
        let devices = try connection.run(receivers, within: Self.limit)
        return .with {
            $0.state = Int32(base.state(now: now).state.rawValue)
            $0.receivers = devices.map { device in
                var trace = base
                trace.record = device.record
                trace.syncPoint = device.syncPoint
                trace.presence = device.presence
                trace.slot = DeviceSlot(of: device.deviceID)
                return .init(device, trace.state(now: now))
            }
        }
    }

    // MARK: Changes

    private func recall(
        _ message: Mss_Bus_V1_OplogName, for command: Command, replyTo: String, on connection: PostgresConnection
    ) throws(PostgresError) {
        let name = TraceStore.Name(bus: message)
        let found = try connection.run(TraceStore.find(name), within: Self.limit)
        guard let found, found.isOfConfiguration else { return reply(nil, isCertain: true, command, replyTo) }
        let address = ChannelAddress(target: found.target, bizType: name.bizType)
        let person = command.by.isPerson ? command.by : nil
        let query = OplogStore.recall(
            address, found.oplog.thirdMessageID, by: person, in: stores.store(of: address.target))
        guard let recalled = try connection.run(query, within: Self.limit) else {
            return reply(nil, isCertain: true, command, replyTo)
        }
        logger.info("oplog recalled", metadata: ["oplog_id": "\(recalled.oplogID)", "actor": "\(command.actor)"])
        // Any gateway can have the original, also one with an older connection of a device. The reply waits until each
        // gateway has confirmed the recall.
        let leaseRecord = try Self.afterCommit { () throws(PostgresError) in
            try connection.run(LeaseRecord.read, within: Self.limit)
        }
        notifyGateways(of: leaseRecord) { correlation in
            .with { $0.oplogs = .init([recalled], of: address, correlation: correlation) }
        } whenAnswered: { [self] isCertain in
            reply(recalled.oplogID, isCertain: isCertain, command, replyTo)
        }
    }

    /// Runs a query after a commit. If the query fails, the change is still made, so the error says that the outcome is
    /// unknown, and the caller repeats the command.
    static func afterCommit<Output>(
        _ read: () throws(PostgresError) -> Output
    ) throws(PostgresError) -> Output {
        do throws(PostgresError) {
            return try read()
        } catch {
            throw error.afterCommit
        }
    }

    /// Sends every gateway with a lease a notice to which it must reply.
    ///
    /// - Parameters:
    ///   - leaseRecord: read after the change was committed.
    ///   - build: makes the notice with the given correlation.
    ///   - whenAnswered: called once. True: every gateway that may hold a lease has replied.
    func notifyGateways(
        of leaseRecord: LeaseRecord, _ build: (UInt64) -> Mss_Bus_V1_GatewayNotice,
        whenAnswered: @escaping @Sendable (_ isCertain: Bool) -> Void
    ) {
        let gateways = leaseRecord.gatewayIDs
        // One reply cannot speak for two processes of one gateway id.
        let isWhole = leaseRecord.isComplete && leaseRecord.leases.count == gateways.count
        let replies = ReplyCollection(count: gateways.count) { results in
            whenAnswered(isWhole && results.allSatisfy { if case .success = $0 { true } else { false } })
        }
        for (index, gateway) in gateways.enumerated() {
            bus.notify(gateway: gateway, timeout: Self.noticeLimit, build) { replies.add($0, at: index) }
        }
    }

    private func reply(_ oplogID: OplogID?, isCertain: Bool, _ command: Command, _ replyTo: String) {
        bus.reply(
            .with {
                $0.correlation = command.correlation
                $0.recall.oplogID = oplogID?.value ?? 0
                $0.recall.uncertain = !isCertain
            }, to: replyTo)
    }

    private func replay(
        _ request: Mss_Bus_V1_ReplayRequest, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let find = TraceStore.find(TraceStore.Name(bus: request.oplog))
        guard let found = try connection.run(find, within: Self.limit), found.isOfConfiguration else {
            return .with { $0.replay = .init() }
        }
        let query = DeadLetterStore.replay(
            channelID: found.channelID, oplogID: found.oplog.id, deviceID: DeviceID(request.deviceID), by: actor,
            in: stores.store(ofID: found.channelID))
        let replay = try connection.run(query, within: Self.limit)
        if let gateway = replay?.gatewayID {
            bus.notify(
                gateway: gateway,
                .with {
                    $0.rereadWaiting.instanceID = request.oplog.instanceID
                    $0.rereadWaiting.deviceID = request.deviceID
                })
        }
        return .with { $0.replay.rereadID = replay?.rereadID ?? 0 }
    }
}

extension Mss_Bus_V1_OperationCommand {
    /// The instance of the command; empty for an unknown command.
    fileprivate var instanceID: String {
        switch body {
        case .trace(let request): request.oplog.instanceID
        case .dryRun(let append): append.target.instanceID
        case .recall(let name): name.instanceID
        case .devices(let request): request.instanceID
        case .deadLetters(let request): request.instanceID
        case .replay(let request): request.oplog.instanceID
        case .revokeSessions(let request): request.instanceID
        case .disconnect(let request): request.instanceID
        case .device(let request): request.instanceID
        case .recordPush(let push): push.oplog.instanceID
        case .startRollout(let request): request.instanceID
        case .changeRollout(let request): request.name.instanceID
        case .rollouts(let request): request.instanceID
        case nil: ""
        }
    }
}
