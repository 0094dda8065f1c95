import AMQP
import BusMessages
import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Answers what people ask about operations, and has dead ones done after all.
actor PeopleLane {
    private static let limit = Duration.seconds(5)
    /// Days that figures are told of.
    private static let days = 31
    /// Rows of one list at the most.
    private static let listMax = 1_000

    private let thread = ConnectionThread(name: "people")
    private let connection: PostgresConnection
    private let queue: WorkQueue<AMQPDelivery>
    private let bus: MessageBus
    /// Told which instance has something to do.
    private let retried: @Sendable (InstanceID) -> Void
    private let logger: Logger

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        configuration: PostgresConfiguration, queue: WorkQueue<AMQPDelivery>, bus: MessageBus,
        retried: @escaping @Sendable (InstanceID) -> Void, logger: Logger
    ) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.queue = queue
        self.bus = bus
        self.retried = retried
        self.logger = logger
    }

    /// Works until the queue is finished and empty.
    func run() async {
        while true {
            let deliveries = await queue.take(upTo: 8)
            if deliveries.isEmpty { break }
            for delivery in deliveries { perform(delivery) }
            bus.settle(deliveries, as: .accepted)
        }
        connection.close()
        thread.stop()
    }

    private func perform(_ delivery: AMQPDelivery) {
        guard let commands = Mss_Bus_V1_RelayCommands.elements(of: delivery.body), let replyTo = delivery.replyTo
        else { return logger.error("a command body could not be read", metadata: ["bytes": "\(delivery.body.count)"]) }
        for command in commands {
            var reply: Mss_Bus_V1_Reply
            do throws(PostgresError) {
                reply = try answer(command)
            } catch {
                reply = .with { $0.failure.reason = error.message }
            }
            reply.correlation = command.correlation
            bus.reply(reply, to: replyTo, through: CommandQueue.relay.answers)
        }
    }

    private func answer(_ command: Mss_Bus_V1_RelayCommand) throws(PostgresError) -> Mss_Bus_V1_Reply {
        switch command.body {
        case .list(let request):
            let instanceID = InstanceID(request.instanceID)
            let filter = DeviceOperationStore.Filter(
                instanceID: instanceID, state: DeviceOperationState(rawValue: Int16(clamping: request.state)),
                deviceID: request.deviceID.isEmpty ? nil : DeviceID(request.deviceID),
                userID: request.userID.isEmpty ? nil : UserID(request.userID))
            let query = DeviceOperationStore.list(
                filter, before: request.before, most: min(max(Int(request.limit), 1), Self.listMax))
            let rows = try connection.run(query, within: Self.limit)
            let counts = try connection.run(DeviceOperationStore.counts(of: instanceID), within: Self.limit)
            let days = try connection.run(
                DeviceOperationStore.days(of: instanceID, last: Self.days), within: Self.limit)
            return .with {
                $0.deviceOperations.operations = rows.map(\.bus)
                $0.deviceOperations.days = days.map(\.bus)
                $0.deviceOperations.counts = counts.sorted { $0.key.rawValue < $1.key.rawValue }.map { state, count in
                    .with {
                        $0.state = UInt32(state.rawValue)
                        $0.operations = count
                    }
                }
            }
        case .show(let name):
            let found = try find(name)
            return .with {
                $0.deviceOperation = .init()
                if let found { $0.deviceOperation.operation = found.bus }
            }
        case .retry(let name): return try retry(name, by: command.by)
        case nil: return .with { $0.failure.reason = "this build does not know the command" }
        }
    }

    private func retry(
        _ name: Mss_Bus_V1_DeviceOperationName, by actor: OperationActor
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        guard actor.isPerson else { return .with { $0.failure.reason = "only people may ask this" } }
        let (instanceID, deviceID) = (InstanceID(name.instanceID), DeviceID(name.deviceID))
        let isDone = try connection.run(
            DeviceOperationStore.retry(name.operationID, of: deviceID, instanceID, by: actor), within: Self.limit)
        if isDone { retried(instanceID) }
        let found = try find(name)
        return .with {
            $0.deviceOperation.refusal = isDone ? "" : "there is no such dead operation"
            if let found { $0.deviceOperation.operation = found.bus }
        }
    }

    private func find(
        _ name: Mss_Bus_V1_DeviceOperationName
    ) throws(PostgresError) -> DeviceOperationStore.Held? {
        let filter = DeviceOperationStore.Filter(
            instanceID: InstanceID(name.instanceID), deviceID: DeviceID(name.deviceID), operationID: name.operationID)
        return try connection.run(DeviceOperationStore.list(filter, most: 1), within: Self.limit).first
    }
}

extension DeviceOperationStore.Day {
    var bus: Mss_Bus_V1_DeviceOperationDay {
        .with {
            $0.day = day
            $0.component = component
            $0.accepted = accepted
            $0.refused = refused
            $0.dead = dead
            $0.attempts = attempts
            $0.waitedMs = waited.wholeMilliseconds
        }
    }
}

extension DeviceOperationStore.Held {
    /// The operation as people see it: what was in it is the tenant's.
    var bus: Mss_Bus_V1_DeviceOperationRow {
        .with {
            $0.number = number
            $0.deviceID = deviceID.text
            $0.userID = userID.text
            $0.operationID = operation.id
            $0.component = operation.component
            $0.entityKey = operation.key
            $0.name = operation.name
            $0.state = UInt32(state.rawValue)
            $0.attempts = UInt32(clamping: attempts)
            $0.code = UInt32(clamping: code)
            $0.message = message
            $0.takenAtMs = takenAt.milliseconds
            $0.atMs = at?.milliseconds ?? 0
            $0.bodyBytes = UInt32(clamping: bodyBytes)
            $0.children = UInt32(clamping: childCount)
        }
    }
}
