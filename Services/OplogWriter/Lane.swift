import AMQP
import BusMessages
import ConnectionThread
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// One PostgreSQL connection and the thread that owns it. Commands come off its queue in groups, as many as wait,
/// and go to the database in one round trip: a group commit without a timer.
actor Lane<Work: LaneWork> {
    private let thread: ConnectionThread
    private let connection: PostgresConnection
    private let queue: WorkQueue<AMQPDelivery>
    private let work: Work
    private let logger: Logger

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        name: String, configuration: PostgresConfiguration, queue: WorkQueue<AMQPDelivery>, work: Work, logger: Logger
    ) {
        thread = ConnectionThread(name: name)
        connection = Work.connection(configuration, logger: logger)
        self.queue = queue
        self.work = work
        self.logger = logger
    }

    /// Works until the queue is finished and empty. Leaves only then: a database that is away fails commands, which
    /// their callers repeat, and is tried anew with every group.
    func run() async {
        while true {
            let deliveries = await queue.take(upTo: Work.groupBodies)
            if deliveries.isEmpty { break }
            let tasks = work.tasks(of: deliveries, now: .now, logger: logger)
            if !tasks.isEmpty { work.perform(tasks, on: connection) }
        }
        connection.close()
        thread.stop()
    }
}

/// One body of commands on its way through a lane.
struct LaneTask<Command: Sendable>: Sendable {
    let delivery: AMQPDelivery
    let replyTo: String
    let commands: [Command]
}

/// What a lane does with its commands.
protocol LaneWork: Sendable {
    associatedtype Command: BusCommand
    /// The queue whose time-out bounds the commands.
    static var queue: CommandQueue { get }
    /// How many bodies make a group at the most.
    static var groupBodies: Int { get }
    /// Reads a body; nil when it is none of this kind.
    static func commands(of body: [UInt8]) -> [Command]?
    var bus: MessageBus { get }
    /// The connection that a lane works on.
    static func connection(_ configuration: PostgresConfiguration, logger: Logger) -> PostgresConnection
    /// Does everything that the commands ask for, answers them and settles their bodies.
    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection)
}

extension LaneWork {
    static func connection(_ configuration: PostgresConfiguration, logger: Logger) -> PostgresConnection {
        SyncDatabase.connection(configuration, logger: logger)
    }

    /// What of these bodies is to be done; the others are settled.
    func tasks(of deliveries: [AMQPDelivery], now: ContinuousClock.Instant, logger: Logger) -> [LaneTask<Command>] {
        deliveries.compactMap { delivery in
            guard let commands = Self.commands(of: delivery.body), let replyTo = delivery.replyTo else {
                logger.error("a command body could not be read", metadata: ["bytes": "\(delivery.body.count)"])
                bus.settle([delivery], as: .rejected)
                return nil
            }
            // Nobody waits for an answer to an old command, and what was answered with an error must not happen much
            // later. A redelivered one may have been committed by its first consumer, so it is looked at; but for those
            // of sessions and leases, which would stand for a connection or a gateway that is gone by now.
            if delivery.isRedelivered, ![CommandQueue.session, .lease].contains(Self.queue) {
                return LaneTask(delivery: delivery, replyTo: replyTo, commands: commands)
            }
            let timely = refuseLate(commands, of: delivery, to: replyTo, now: now)
            guard !timely.isEmpty else {
                bus.settle([delivery], as: .accepted)
                return nil
            }
            return LaneTask(delivery: delivery, replyTo: replyTo, commands: timely)
        }
    }

    /// Refuses the commands that are past their deadline by the database's clock, or, where they have none, that waited
    /// here longer than their caller does.
    ///
    /// - Returns: the others.
    private func refuseLate(
        _ commands: [Command], of delivery: AMQPDelivery, to replyTo: String, now: ContinuousClock.Instant
    ) -> [Command] {
        #if KNOWN_BAD
            if KnownBad.deadlineIgnored.isOn { return commands }
        #endif
        let time = bus.databaseTime.time(at: now)?.milliseconds ?? 0
        let waitedTooLong = delivery.receivedAt + Self.queue.timeout < now
        return commands.filter { command in
            let isLate = command.deadlineMs == 0 || time == 0 ? waitedTooLong : command.deadlineMs < time
            if isLate {
                bus.reply(
                    .with {
                        $0.correlation = command.correlation
                        $0.databaseTimeMs = time
                        $0.failure.reason = "the command came after its deadline"
                        $0.failure.notAttempted = true
                    }, to: replyTo)
            }
            return !isLate
        }
    }

    /// Answers commands one after the other, each by itself, then settles their bodies.
    ///
    /// - Parameter answer: gives the reply without its correlation; nil: it is given later.
    func answerEach(
        _ tasks: [LaneTask<Command>], _ correlation: KeyPath<Command, UInt64>,
        _ answer: (Command, _ replyTo: String) throws(PostgresError) -> Mss_Bus_V1_Reply?
    ) {
        for task in tasks {
            for command in task.commands {
                do throws(PostgresError) {
                    guard var reply = try answer(command, task.replyTo) else { continue }
                    reply.correlation = command[keyPath: correlation]
                    bus.reply(reply, to: task.replyTo)
                } catch {
                    fail(command[keyPath: correlation], to: task.replyTo, with: error)
                }
            }
        }
        bus.settle(tasks.map(\.delivery), as: .accepted)
    }

    /// Answers one command that could not be done.
    func fail(_ correlation: UInt64, to replyTo: String, with error: PostgresError) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = correlation
        reply.failure.reason = error.message
        reply.failure.notAttempted = error.hadNoEffect
        bus.reply(reply, to: replyTo)
    }
}

extension PostgresError {
    /// Whether the database is known to be as before: nothing was sent, or the statement was rolled back.
    var hadNoEffect: Bool {
        switch code {
        case .outcomeUnknown: false
        default: true
        }
    }

    /// The same where something was committed before it: nobody may take it for a failure of the whole.
    var afterCommit: PostgresError { PostgresError(code: .outcomeUnknown, message: message, mayRetry: true) }
}
