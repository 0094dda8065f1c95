import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Says what instances, keys and configurations there are. It changes nothing, whatever it is sent (SEC10).
struct SnapshotWork: LaneWork {
    typealias Command = Mss_Bus_V1_ControlCommand

    static let queue = CommandQueue.snapshot
    static let groupBodies = 8

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_ControlCommands.elements(of: body) }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        answerEach(tasks, \.correlation) { command, _ throws(PostgresError) in
            guard case .snapshot(let request)? = command.body else {
                return .with { $0.failure.reason = "this queue answers snapshots only" }
            }
            return try snapshot(after: request.knownVersion, on: connection)
        }
    }

    /// The version is read first: should a change come in between, the snapshot is newer than its version says, and
    /// the next question brings it again.
    private func snapshot(
        after known: Int64, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let version = try connection.run(ControlStore.version, within: .seconds(5))
        guard version != known else { return .with { $0.snapshot.version = version } }
        let instances = try connection.run(ControlStore.instances, within: .seconds(5))
        let keys = Dictionary(grouping: try connection.run(KeyStore.all, within: .seconds(5)), by: \.instanceID)
        let configurations = try connection.run(ControlStore.configurations, within: .seconds(5))
        return .with {
            $0.snapshot.version = version
            $0.snapshot.instances = instances.map { instance in
                var instance = instance
                instance.keys = keys[instance.id, default: []].map(\.key)
                return instance.bus
            }
            $0.snapshot.configurations = configurations.map(\.bus)
        }
    }
}
