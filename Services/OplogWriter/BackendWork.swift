import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Answers what backends ask about pushes. Their queue is open to ingests: what only people may ask is refused there,
/// and so is whoever speaks for a person, so that no ingest can write into the operation records (reliability SEC10).
struct BackendWork: LaneWork {
    typealias Command = Mss_Bus_V1_OperationCommand

    static let queue = CommandQueue.operation
    static let groupBodies = OperationWork.groupBodies

    let operations: OperationWork

    var bus: MessageBus { operations.bus }

    static func commands(of body: [UInt8]) -> [Command]? { OperationWork.commands(of: body) }

    static func connection(_ configuration: PostgresConfiguration, logger: Logger) -> PostgresConnection {
        OperationWork.connection(configuration, logger: logger)
    }

    /// Whether a backend may ask this.
    static func takes(_ command: Command) -> Bool {
        guard !command.by.isPerson else { return false }
        return switch command.body {
        case .trace(let request): !request.withPayload
        case .dryRun, .recall, .revokeSessions: true
        case .devices, .deadLetters, .replay, .disconnect, .device, .recordPush, nil: false
        case .startRollout, .changeRollout, .rollouts: false
        }
    }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) {
        for task in tasks {
            for command in task.commands where !Self.takes(command) {
                operations.logger.error("a command of people came from a backend", metadata: ["by": "\(command.actor)"])
                bus.reply(
                    .with {
                        $0.correlation = command.correlation
                        $0.failure.reason = "backends may not ask this"
                        $0.failure.notAttempted = true
                    }, to: task.replyTo)
            }
        }
        operations.perform(
            tasks.map {
                LaneTask(delivery: $0.delivery, replyTo: $0.replyTo, commands: $0.commands.filter(Self.takes))
            }, on: connection)
    }
}
