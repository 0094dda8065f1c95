import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Executes the queries and commands of backends. Ingests can publish to this queue, so it refuses the commands that
/// only operators may send, and every command in the name of an operator. An ingest thus cannot write into the audit
/// records (SEC10).
struct BackendCommandHandler: CommandHandler {
    typealias Command = Mss_Bus_V1_OperationCommand

    static let queue = CommandQueue.operation
    static let groupBodies = BackendQueryHandler.groupBodies

    let operations: BackendQueryHandler

    var bus: MessageBus { operations.bus }

    static func commands(of body: [UInt8]) -> [Command]? { BackendQueryHandler.commands(of: body) }

    static func connection(
        _ configuration: PostgresConfiguration, stores: StoreLayout?, logger: Logger
    ) -> PostgresConnection {
        BackendQueryHandler.connection(configuration, stores: stores, logger: logger)
    }

    /// Whether a backend may send this command.
    static func isAllowed(_ command: Command) -> Bool {
        guard !command.by.isPerson else { return false }
        return switch command.body {
        case .trace(let request): !request.withPayload
        case .dryRun, .recall, .revokeSessions: true
        case .devices, .deadLetters, .replay, .disconnect, .device, .recordPush, nil: false
        case .startRollout, .changeRollout, .rollouts: false
        }
    }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        for task in tasks {
            for command in task.commands where !Self.isAllowed(command) {
                operations.logger.error(
                    "refused a command on the backend queue that only operators may send",
                    metadata: ["by": "\(command.actor)"])
                bus.reply(
                    .with {
                        $0.correlation = command.correlation
                        $0.failure.reason = "backends may not send this command"
                        $0.failure.notAttempted = true
                    }, to: task.replyTo)
            }
        }
        operations.perform(
            tasks.map {
                StoreTask(body: $0.body, replyTo: $0.replyTo, commands: $0.commands.filter(Self.isAllowed))
            }, on: connection)
    }
}
