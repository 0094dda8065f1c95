import AMQP
import BusMessages
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Returns the instances, keys and configurations. No command on this queue changes anything (SEC10).
struct SnapshotHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_ControlCommand

    static let queue = CommandQueue.snapshot
    static let groupBodies = 8

    let bus: MessageBus

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_ControlCommands.elements(of: body) }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        answerEach(tasks, \.correlation) { command, _ throws(PostgresError) in
            guard case .snapshot(let request)? = command.body else {
                return .with { $0.failure.reason = "this queue answers snapshots only" }
            }
            return try snapshot(for: request, on: connection)
        }
    }

    /// The version is read first. If a change commits in between, the snapshot is newer than its version, and the next
    /// request transfers it again.
    private func snapshot(
        for request: Mss_Bus_V1_SnapshotRequest, on connection: PostgresConnection
    ) throws(PostgresError) -> Mss_Bus_V1_Reply {
        let version = try connection.run(ControlStore.version, within: .seconds(5))
        guard version != request.knownVersion else { return .with { $0.snapshot.version = version } }
        let instances = try connection.run(ControlStore.instances, within: .seconds(5))
        let held = Self.keys(
            try connection.run(KeyStore.all, within: .seconds(5)), for: AppKey.Purpose(bus: request.keyPurpose))
        let keys = Dictionary(grouping: held, by: \.instanceID)
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

    /// The keys for a requester: the keys of the purpose that it names, or, without a purpose, all keys without
    /// secrets. A requester that names another purpose than its own gets secrets that it cannot open (`SealingRing`).
    static func keys(_ all: [KeyStore.Held], for purpose: AppKey.Purpose?) -> [KeyStore.Held] {
        if let purpose { return all.filter { $0.key.purpose == purpose } }
        return all.map { held in
            var held = held
            held.key.sealedSecret = []
            return held
        }
    }
}
