import BusMessages
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Executes the queries of operators about device operations, and their retries of dead operations.
struct OperatorCommandHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_RelayCommand

    static let queue = CommandQueue.relay
    static let prefetch: UInt16 = 64
    static let groupBodies = 8
    private static let limit = Duration.seconds(5)
    /// The number of days with figures.
    private static let days = 31
    /// The largest number of rows in one list.
    private static let listMax = 1_000

    let bus: MessageBus
    /// Called with the instance of a retried operation.
    let retried: @Sendable (InstanceID) -> Void

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_RelayCommands.elements(of: body) }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        answerEach(tasks, \.correlation) { command, _ throws(PostgresError) in try answer(command, on: connection) }
    }

    private func answer(
        _ command: Mss_Bus_V1_RelayCommand, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
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
            let found = try find(name, on: connection)
            return .with {
                $0.deviceOperation = .init()
                if let found { $0.deviceOperation.operation = found.bus }
            }
        case .retry(let name): return try retry(name, by: command.by, on: connection)
        case nil: return .with { $0.failure.reason = "this build does not know the command" }
        }
    }

    private func retry(
        _ name: Mss_Bus_V1_DeviceOperationName, by actor: OperationActor, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        guard actor.isPerson else { return .with { $0.failure.reason = "only operators may send this command" } }
        let (instanceID, deviceID) = (InstanceID(name.instanceID), DeviceID(name.deviceID))
        let isDone = try connection.run(
            DeviceOperationStore.retry(name.operationID, of: deviceID, instanceID, by: actor), within: Self.limit)
        if isDone { retried(instanceID) }
        let found = try find(name, on: connection)
        return .with {
            $0.deviceOperation.refusal = isDone ? "" : "there is no such dead operation"
            if let found { $0.deviceOperation.operation = found.bus }
        }
    }

    private func find(
        _ name: Mss_Bus_V1_DeviceOperationName, on connection: PostgresConnection
    ) throws(PostgresError) -> DeviceOperationStore.StoredOperation? {
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

extension DeviceOperationStore.StoredOperation {
    /// The operation as operators see it: without its body, which only the tenant may read.
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
