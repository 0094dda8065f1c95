package import AMQP
package import BusMessages
package import Logging
package import PostgreSQL
package import ServiceKit
import SwiftProtobuf
import SyncModel
package import SyncStore

/// The commands of one body that a store worker executes.
package struct StoreTask<Command: Sendable>: Sendable {
    package let body: CommandBody<Command>
    package let replyTo: String
    package let commands: [Command]

    package var delivery: AMQPDelivery { body.delivery }

    package init(body: CommandBody<Command>, replyTo: String, commands: [Command]) {
        (self.body, self.replyTo, self.commands) = (body, replyTo, commands)
    }
}

/// Executes the commands of one queue.
package protocol CommandHandler: Sendable {
    associatedtype Command: BusCommand
    /// The queue of the commands. Its time-out bounds the age of a command without a deadline.
    static var queue: CommandQueue { get }
    /// Bodies that RabbitMQ delivers before their acknowledgement: those that the store workers process, and those that
    /// are ready for them; 256 by default.
    static var prefetch: UInt16 { get }
    /// The largest number of bodies in one group.
    static var groupBodies: Int { get }
    /// The commands of a body; nil if the body is not readable as this kind of command.
    static func commands(of body: [UInt8]) -> [Command]?
    var bus: MessageBus { get }
    /// Makes the connection of a store worker.
    ///
    /// - Parameter stores: the number of stores that the process works with; nil: it works with any number.
    static func connection(
        _ configuration: PostgresConfiguration, stores: StoreLayout?, logger: Logger
    ) -> PostgresConnection
    /// Executes the commands, replies to them and acknowledges their bodies.
    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection)
}

extension CommandHandler {
    package static var prefetch: UInt16 { 256 }

    package static func connection(
        _ configuration: PostgresConfiguration, stores: StoreLayout?, logger: Logger
    ) -> PostgresConnection {
        SyncDatabase.connection(configuration, stores: stores, logger: logger)
    }

    /// The tasks of these bodies. Acknowledges the bodies that need no execution: unreadable bodies, and bodies with
    /// only late commands.
    package func tasks(
        of bodies: [CommandBody<Command>], now: ContinuousClock.Instant, logger: Logger
    ) -> [StoreTask<Command>] {
        bodies.compactMap { body in
            let delivery = body.delivery
            guard let commands = body.commands ?? Self.commands(of: delivery.body), let replyTo = delivery.replyTo
            else {
                logger.error("a command body could not be read", metadata: ["bytes": "\(delivery.body.count)"])
                bus.acknowledge([delivery], as: .rejected)
                return nil
            }
            // The caller of a late command has given up, so it must not be executed any more. A redelivered body is an
            // exception: its first consumer may have committed it, and the caller needs that result. Commands of
            // sessions and leases are never an exception, because their connection or gateway may have ended.
            if delivery.isRedelivered, ![CommandQueue.session, .lease].contains(Self.queue) {
                return StoreTask(body: body, replyTo: replyTo, commands: commands)
            }
            let timely = refuseLate(commands, of: delivery, to: replyTo, now: now)
            let task = StoreTask(body: body, replyTo: replyTo, commands: timely)
            guard !timely.isEmpty else {
                bus.acknowledge([task])
                return nil
            }
            return task
        }
    }

    /// Replies with a failure to the commands that are past their deadline by the database's clock. A command without a
    /// deadline is late after the time-out of its queue.
    ///
    /// - Returns: the commands that are not late.
    private func refuseLate(
        _ commands: [Command], of delivery: AMQPDelivery, to replyTo: String, now: ContinuousClock.Instant
    ) -> [Command] {
        let time = bus.databaseTime.time(at: now)?.milliseconds ?? 0
        let waitedTooLong = delivery.receivedAt + Self.queue.timeout < now
        return commands.filter { command in
            let isLate = command.deadlineMs == 0 || time == 0 ? waitedTooLong : command.deadlineMs < time
            if isLate {
                bus.reply(
                    .with {
                        $0.correlation = command.correlation
                        $0.databaseTimeMs = time
                        $0.failure.reason = "the command arrived after its deadline"
                        $0.failure.notAttempted = true
                    }, to: replyTo, through: Self.queue.answers)
            }
            return !isLate
        }
    }

    /// Replies to each command by itself, then acknowledges the bodies.
    ///
    /// - Parameter answer: makes the reply without its correlation; nil if the reply follows later.
    package func answerEach(
        _ tasks: [StoreTask<Command>], _ correlation: KeyPath<Command, UInt64>,
        _ answer: (Command, _ replyTo: String) throws(PostgresError) -> Mss_Bus_V1_Reply?
    ) {
        for task in tasks {
            for command in task.commands {
                do throws(PostgresError) {
                    guard var reply = try answer(command, task.replyTo) else { continue }
                    reply.correlation = command[keyPath: correlation]
                    bus.reply(reply, to: task.replyTo, through: Self.queue.answers)
                } catch {
                    fail(command[keyPath: correlation], to: task.replyTo, with: error)
                }
            }
        }
        bus.acknowledge(tasks)
    }

    /// Replies to one command with the failure.
    package func fail(_ correlation: UInt64, to replyTo: String, with error: PostgresError) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = correlation
        reply.failure.reason = error.message
        reply.failure.notAttempted = error.hadNoEffect
        bus.reply(reply, to: replyTo, through: Self.queue.answers)
    }
}

extension PostgresError {
    /// Whether the statement certainly changed nothing: it was not sent, or the database rolled it back.
    package var hadNoEffect: Bool {
        switch code {
        case .outcomeUnknown: false
        default: true
        }
    }

    /// The same error after an earlier commit of the same command. Its outcome is unknown, so that the caller does not
    /// take the whole command for failed.
    package var afterCommit: PostgresError { PostgresError(code: .outcomeUnknown, message: message, mayRetry: true) }
}
