package import AMQP
package import BusMessages
import Foundation
package import Logging
import Metrics
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization

/// Typed sending, requests and replies: the schemas of BusMessages over one AMQP connection.
package final class MessageBus: Service, Sendable {
    /// Makes the connection that carries a bus.
    package typealias Connecting = (AMQPTopology, [AMQPConsumption], AMQPEvents) -> any AMQPTransport

    private let client: any AMQPTransport
    private let ledger: RequestLedger
    private let clock: ProcessClock
    /// The database's time, as the replies of the writers tell it.
    package let databaseTime: SharedDatabaseClock
    private let connectionListeners: ConnectionListeners
    /// The key of the answers that do not come straight back; nil: this process asks for none.
    private let answerKey: String?
    /// Nil: nobody hears how this process stands.
    private let reporter: ProcessReporter?
    private let logger: Logger

    /// Describes the connection; nothing happens before `run`.
    ///
    /// - Parameters:
    ///   - extra: exclusive queues of this process: its notices, its control changes.
    ///   - consumptions: what it consumes; handlers run on the connection's thread and must not block. Command queues
    ///     among them are declared.
    ///   - answers: the answers that it asks for and that do not come straight back.
    ///   - reporter: what consoles hear of this process over this connection; nil for a tool.
    package convenience init(
        configuration: AMQPConfiguration, extra: AMQPTopology = AMQPTopology(), consumptions: [AMQPConsumption],
        answers: [AnswerExchange] = [], reporter: ProcessReporter? = nil, logger: Logger
    ) {
        self.init(
            extra: extra, consumptions: consumptions, answers: answers, reporter: reporter, logger: logger
        ) { topology, consumptions, events in
            AMQPClient(
                configuration: configuration, topology: topology, consumptions: consumptions, events: events,
                logger: logger)
        }
    }

    /// The same over any connection.
    ///
    /// - Parameter processID: part of the names of this process's own queues.
    package init(
        extra: AMQPTopology = AMQPTopology(), consumptions: [AMQPConsumption], answers: [AnswerExchange] = [],
        reporter: ProcessReporter? = nil, processID: String = UUID().uuidString, clock: ProcessClock = .system,
        logger: Logger, over connect: Connecting
    ) {
        let databaseTime = SharedDatabaseClock(clock: clock)
        let ledger = RequestLedger(databaseTime: databaseTime)
        self.databaseTime = databaseTime
        self.ledger = ledger
        let misplaced = Counter(label: "mss_bus_answers_refused")
        let returned = Counter(label: "mss_bus_bodies_returned")
        let (sent, received) = (Counter(label: "mss_bus_bodies_sent"), Counter(label: "mss_bus_bodies_received"))
        let complete: @Sendable ([[UInt8]], AnswerExchange?) -> Void = { bodies, exchange in
            for body in bodies {
                guard let replies = Mss_Bus_V1_Replies.elements(of: body) else {
                    logger.error("a reply could not be read")
                    continue
                }
                let refused = replies.count { !Self.complete($0, by: exchange, in: ledger) }
                guard refused > 0 else { continue }
                misplaced.increment(by: refused)
                logger.error(
                    "answers came from who was not asked",
                    metadata: ["exchange": "\(exchange?.rawValue ?? "")", "count": "\(refused)"])
            }
        }
        var topology = AMQPTopology.commands(consumptions.compactMap { CommandQueue(rawValue: $0.queue) }).adding(extra)
        var consumptions = consumptions
        // A tier that may bind such a queue could send commands through an exchange of its own (SEC10).
        for index in consumptions.indices where Topology.sharedQueues.contains(consumptions[index].queue) {
            consumptions[index].exchange = Topology.exchange(to: consumptions[index].queue)
        }
        for exchange in answers {
            topology = topology.adding(.answers(exchange, processID: processID))
            consumptions.append(
                AMQPConsumption(queue: exchange.queue(processID: processID), prefetch: nil) { deliveries in
                    complete(deliveries.map(\.body), exchange)
                })
        }
        answerKey = answers.isEmpty ? nil : processID
        let listeners = ConnectionListeners()
        self.reporter = reporter
        self.logger = logger
        connectionListeners = listeners
        self.clock = clock
        client = connect(
            topology, consumptions,
            AMQPEvents(
                onConnected: { listeners.tell(isConnected: true) },
                onDisconnected: {
                    ledger.failAll(BusError(.unanswered, "the broker's connection fell"))
                    listeners.tell(isConnected: false)
                },
                onReplies: { complete($0, nil) },
                onReturned: { route, body in
                    returned.increment()
                    logger.debug("no queue took a message", metadata: ["exchange": "\(route.exchange)"])
                    guard CommandQueue.allCases.contains(where: { $0.exchange == route.exchange }) else { return }
                    // Whoever asked need not wait for the deadline to know that nobody has it.
                    for command in Mss_Bus_V1_CommandHeads.elements(of: body) ?? [] {
                        ledger.close(
                            command.correlation, with: .failure(BusError(.unavailable, "nobody is there to take it")))
                    }
                },
                onTraffic: { written, read in
                    if written > 0 { sent.increment(by: written) }
                    if read > 0 { received.increment(by: read) }
                }))
    }

    /// Runs the connection, the deadlines of requests and the reports until shutdown.
    package func run() async throws {
        let (client, reporter) = (client, reporter)
        try await withThrowingTaskGroup(of: Void.self) { group in
            if let reporter { group.addTask { await reporter.run { self.report($0) } } }
            group.addTask {
                // Deadlines are seconds; a tick of 50 ms ends them soon enough and costs next to nothing.
                while !Task.isCancelled {
                    try await Task.sleep(for: .milliseconds(50))
                    self.expireRequests()
                }
            }
            try await client.run()
            group.cancelAll()
        }
    }

    /// Ends the requests whose deadline has passed.
    package func expireRequests() { ledger.expire(now: clock.now()) }

    /// Whether the broker takes messages now.
    package var isConnected: Bool { client.isConnected }

    /// Calls back, on the connection's thread, whenever the connection comes up or falls.
    package func onConnectionChange(_ listener: @escaping @Sendable (Bool) -> Void) {
        connectionListeners.add(listener)
    }

    /// Does what sends, answers and settles without waiting for anything; all of it leaves after it, in as few messages
    /// as can be.
    package func together<Result>(_ sends: () -> Result) -> Result { client.together(sends) }

    /// Sends one command; the completion is called exactly once, also when sending fails, and must not block. A full
    /// queue ends it at once: the broker refuses the message, so the command had no effect.
    ///
    /// - Parameter build: makes the command that carries the given correlation; its deadline is set here.
    package func request<E: Envelope>(
        _ queue: CommandQueue, as _: E.Type, timeout: Duration? = nil, _ build: (UInt64) -> E.Element,
        completion: @escaping RequestLedger.Completion
    ) where E.Element: BusCommand {
        let timeout = timeout ?? queue.timeout
        let correlation = ledger.open(deadline: clock.now() + timeout, answeredBy: queue.answers, completion)
        do throws(AMQPError) {
            var command = build(correlation)
            command.deadlineMs = deadline(within: timeout)
            try client.send(E.body([command]), on: route(to: queue)) { [ledger] outcome in
                guard outcome == .refused else { return }
                ledger.close(correlation, with: .failure(Self.refused(by: queue)))
            }
        } catch {
            ledger.close(correlation, with: .failure(BusError(.unavailable, error.message)))
        }
    }

    /// Sends one command and waits for its reply.
    package func request<E: Envelope>(
        _ queue: CommandQueue, as envelope: E.Type, timeout: Duration? = nil,
        _ build: @Sendable (UInt64) -> E.Element
    ) async throws(BusError) -> Mss_Bus_V1_Reply where E.Element: BusCommand {
        let result = await withCheckedContinuation { continuation in
            request(queue, as: envelope, timeout: timeout, build) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// For each request that waits for its answer already, a further one may wait this long for others that share its
    /// body. One that is worked off alone costs this much processor time in all processes, broker and database, so that
    /// where much is under way waiting makes the answer earlier, not later.
    private static let patienceOfOne = Duration.microseconds(400)
    /// The longest wait for others.
    private static let mostPatience = Duration.milliseconds(10)
    /// A thread cannot sleep for less; with few under way every one leaves at once.
    private static let leastPatience = Duration.milliseconds(1)

    /// How long a request may wait for others when so many are under way.
    static func patience(underWay: Int) -> Duration {
        let patience = min(patienceOfOne * underWay, mostPatience)
        return patience < leastPatience ? .zero : patience
    }

    /// Sends commands in one body, so that one consumer does them in this order, and waits for all replies.
    ///
    /// - Parameter build: makes the command of an index that carries the given correlation; its deadline is set here.
    package func requests<E: Envelope>(
        _ queue: CommandQueue, as _: E.Type, count: Int, _ build: (Int, UInt64) -> E.Element
    ) async -> [Result<Mss_Bus_V1_Reply, BusError>] where E.Element: BusCommand {
        await withCheckedContinuation { continuation in
            let replies = ReplyCollection(count: count) { continuation.resume(returning: $0) }
            let deadline = clock.now() + queue.timeout
            let numbers = (0..<count).map { index in
                ledger.open(deadline: deadline, answeredBy: queue.answers) { replies.add($0, at: index) }
            }
            do throws(AMQPError) {
                let limit = self.deadline(within: queue.timeout)
                let commands = numbers.enumerated().map { index, number in
                    var command = build(index, number)
                    command.deadlineMs = limit
                    return command
                }
                try client.send(
                    E.body(commands), on: route(to: queue),
                    patience: Self.patience(underWay: ledger.count)
                ) { [ledger] outcome in
                    guard outcome == .refused else { return }
                    for number in numbers { ledger.close(number, with: .failure(Self.refused(by: queue))) }
                }
            } catch {
                let failure = BusError(.unavailable, error.message)
                for number in numbers { ledger.close(number, with: .failure(failure)) }
            }
        }
    }

    /// When a command that is sent now is worth nothing any more, by the database's clock; 0 while that is not known.
    private func deadline(within timeout: Duration) -> Int64 {
        databaseTime.time(at: clock.now()).map { ($0 + timeout).milliseconds } ?? 0
    }

    private static func refused(by queue: CommandQueue) -> BusError {
        BusError(.unavailable, "the broker did not take the command: queue \(queue.rawValue) is full or unreachable")
    }

    private func route(to queue: CommandQueue) -> AMQPRoute {
        .command(queue, replyTo: queue.answers == nil ? AMQPRoute.straightBack : answerKey)
    }

    /// Answers; dropped when the broker is away, since the caller's deadline covers that.
    ///
    /// - Parameters:
    ///   - key: what the command or notice said.
    ///   - exchange: nil: straight back.
    package func reply(_ reply: Mss_Bus_V1_Reply, to key: String, through exchange: AnswerExchange? = nil) {
        sendOrLog(Mss_Bus_V1_Replies.body([reply]), on: .answer(to: key, through: exchange))
    }

    /// Tells one gateway; a lost notice is found by its sweep (design §1).
    package func notify(gateway: String, _ notice: Mss_Bus_V1_GatewayNotice) {
        sendOrLog(Mss_Bus_V1_GatewayNotices.body([notice]), on: .notices(gateway))
    }

    /// Tells one gateway and waits for what it took; the completion is called exactly once and must not block.
    ///
    /// - Parameter build: makes the notice that carries the given correlation.
    package func notify(
        gateway: String, timeout: Duration, _ build: (UInt64) -> Mss_Bus_V1_GatewayNotice,
        completion: @escaping RequestLedger.Completion
    ) {
        let correlation = ledger.open(deadline: clock.now() + timeout, answeredBy: .taken, completion)
        do throws(AMQPError) {
            let body = Mss_Bus_V1_GatewayNotices.body([build(correlation)])
            try client.send(body, on: .notices(gateway, replyTo: answerKey))
        } catch {
            ledger.close(correlation, with: .failure(BusError(.unavailable, error.message)))
        }
    }

    /// Tells every gateway that is there; for news that each would find out by itself, only later.
    package func notifyEveryGateway(_ notice: Mss_Bus_V1_GatewayNotice) {
        sendOrLog(Mss_Bus_V1_GatewayNotices.body([notice]), on: .everyGateway)
    }

    /// Announces a version of the control data to every process.
    package func announce(controlVersion: Int64) {
        var changes = Mss_Bus_V1_ControlChanges()
        changes.schema = Topology.schemaVersion
        changes.versions = [controlVersion]
        sendOrLog((try? changes.serializedBytes()) ?? [], on: .controlChanges)
    }

    /// Hands facts to the durable queue; the completion says whether the broker has them.
    ///
    /// - Throws: nothing is queued when the broker is away: the caller keeps what caused the facts and repeats.
    package func record(
        _ facts: [Mss_Bus_V1_Fact], whenConfirmed: @escaping @Sendable (Bool) -> Void
    ) throws(AMQPError) {
        try client.send(Mss_Bus_V1_Facts.body(facts), on: .facts) { whenConfirmed($0 == .confirmed) }
    }

    /// How the queues stand that processes share; one that is not there is left out. For who looks now and then: it
    /// takes an exchange with the broker for each.
    package func queueDepths() async throws(BusError) -> [String: AMQPQueueDepth] {
        do throws(AMQPError) {
            return try await client.depths(of: Topology.sharedQueues)
        } catch {
            throw BusError(.unavailable, error.message)
        }
    }

    /// Tells every console how this process stands; dropped while the broker is away, as the next one says it all.
    private func report(_ report: ProcessReport) {
        sendOrLog(Mss_Bus_V1_ProcessReports.body([report.bus]), on: .reports)
    }

    /// Settles consumed bodies.
    package func settle(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {
        client.settle(deliveries, as: settlement)
    }

    private func sendOrLog(_ body: [UInt8], on route: AMQPRoute) {
        do throws(AMQPError) {
            try client.send(body, on: route)
        } catch {
            logger.debug("a message was dropped", metadata: ["error": "\(error.message)"])
        }
    }

    private static func complete(
        _ reply: Mss_Bus_V1_Reply, by exchange: AnswerExchange?, in ledger: RequestLedger
    ) -> Bool {
        guard case .failure(let failure)? = reply.body else {
            return ledger.answer(
                reply.correlation, by: exchange, with: .success(reply), databaseTimeMs: reply.databaseTimeMs)
        }
        let error = BusError(.failed(notAttempted: failure.notAttempted), failure.reason)
        return ledger.answer(
            reply.correlation, by: exchange, with: .failure(error), databaseTimeMs: reply.databaseTimeMs)
    }
}

/// Who wants to know of the connection; a class, because the AMQP client is built with its events.
private final class ConnectionListeners: Sendable {
    private let listeners = Mutex<[@Sendable (Bool) -> Void]>([])

    func add(_ listener: @escaping @Sendable (Bool) -> Void) { listeners.withLock { $0.append(listener) } }

    func tell(isConnected: Bool) {
        for listener in listeners.withLock({ $0 }) { listener(isConnected) }
    }
}
