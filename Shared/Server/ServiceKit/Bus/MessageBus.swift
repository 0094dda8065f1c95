package import AMQP
package import BusMessages
import Foundation
package import Logging
import Metrics
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization

/// Sends typed messages and matches requests with replies, over one AMQP connection (BusMessages.md).
package final class MessageBus: Service, Sendable {
    /// Creates the connection of a bus.
    package typealias Connecting = (AMQPTopology, [AMQPConsumption], AMQPEvents) -> any AMQPTransport

    private let client: any AMQPTransport
    private let ledger: RequestLedger
    private let clock: ProcessClock
    /// The database's time, from the replies of the writers.
    package let databaseTime: SharedDatabaseClock
    private let connectionListeners: ConnectionListeners
    /// The routing keys of the replies, by exchange.
    private let replyKeys: [AnswerExchange: String]
    /// Sends this process's reports to consoles; nil: sends none.
    private let reporter: ProcessReporter?
    private let logger: Logger

    /// Creates the bus; nothing connects before `run`.
    ///
    /// - Parameters:
    ///   - extra: exclusive queues of this process, for example for notices and control changes.
    ///   - consumptions: the queues to consume. Handlers run on the connection's thread and must not block. Command
    ///     queues among them are declared.
    ///   - answers: the exchanges of the replies that this process waits for: one for each tier to which it sends
    ///     commands or notices.
    ///   - reporter: the source of this process's reports to consoles; nil for a tool.
    package convenience init(
        configuration: AMQPConfiguration, extra: AMQPTopology = AMQPTopology(), consumptions: [AMQPConsumption],
        answers: [AnswerExchange] = [.stored], reporter: ProcessReporter? = nil, logger: Logger
    ) {
        self.init(
            extra: extra, consumptions: consumptions, answers: answers, reporter: reporter, logger: logger
        ) { topology, consumptions, events in
            AMQPClient(
                configuration: configuration, topology: topology, consumptions: consumptions, events: events,
                logger: logger)
        }
    }

    /// Creates the bus over any connection, for example a simulated one.
    ///
    /// - Parameter replyKey: makes the secret routing key of the replies that arrive through an exchange.
    package init(
        extra: AMQPTopology = AMQPTopology(), consumptions: [AMQPConsumption], answers: [AnswerExchange] = [.stored],
        reporter: ProcessReporter? = nil, replyKey: (AnswerExchange) -> String = { _ in UUID().uuidString },
        clock: ProcessClock = .system, logger: Logger, over connect: Connecting
    ) {
        let databaseTime = SharedDatabaseClock(clock: clock)
        let ledger = RequestLedger(databaseTime: databaseTime)
        self.databaseTime = databaseTime
        self.ledger = ledger
        let misplaced = Counter(label: "mss_bus_answers_refused")
        let returned = Counter(label: "mss_bus_bodies_returned")
        let (sent, received) = (Counter(label: "mss_bus_bodies_sent"), Counter(label: "mss_bus_bodies_received"))
        let complete: @Sendable ([[UInt8]], AnswerExchange) -> Void = { bodies, exchange in
            for body in bodies {
                guard let replies = Mss_Bus_V1_Replies.elements(of: body) else {
                    logger.error("dropped a reply that could not be decoded")
                    continue
                }
                let refused = replies.count { !Self.complete($0, by: exchange, in: ledger) }
                guard refused > 0 else { continue }
                misplaced.increment(by: refused)
                logger.error(
                    "dropped replies that arrived on an unexpected exchange",
                    metadata: ["exchange": "\(exchange.rawValue)", "count": "\(refused)"])
            }
        }
        var topology = AMQPTopology.commands(consumptions.compactMap { CommandQueue(rawValue: $0.queue) }).adding(extra)
        var consumptions = consumptions
        // A tier that may bind this queue could send commands through another exchange (SEC10).
        for index in consumptions.indices where Topology.sharedQueues.contains(consumptions[index].queue) {
            consumptions[index].exchange = Topology.exchange(to: consumptions[index].queue)
        }
        let replyKeys = Dictionary(uniqueKeysWithValues: answers.map { ($0, replyKey($0)) })
        for (exchange, key) in replyKeys {
            topology = topology.adding(.answers(exchange, key: key))
            consumptions.append(
                AMQPConsumption(queue: exchange.queue(key: key), prefetch: nil) { deliveries in
                    complete(deliveries.map(\.body), exchange)
                })
        }
        self.replyKeys = replyKeys
        let listeners = ConnectionListeners()
        self.reporter = reporter
        self.logger = logger
        connectionListeners = listeners
        self.clock = clock
        client = connect(
            topology, consumptions,
            AMQPEvents(
                onConnected: { listeners.notify(isConnected: true) },
                onDisconnected: {
                    ledger.failAll(BusError(.unanswered, "the connection to the broker was lost"))
                    listeners.notify(isConnected: false)
                },
                onReturned: { route, body in
                    returned.increment()
                    logger.debug("the broker returned a message: no queue", metadata: ["exchange": "\(route.exchange)"])
                    guard CommandQueue.allCases.contains(where: { $0.exchange == route.exchange }) else { return }
                    // The sender fails at once instead of at its deadline.
                    for command in Mss_Bus_V1_CommandHeads.elements(of: body) ?? [] {
                        ledger.close(
                            command.correlation,
                            with: .failure(BusError(.unavailable, "no consumer: the broker returned the message")))
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
                // Deadlines are seconds, so a tick of 250 ms is exact enough, and an idle process rarely wakes up.
                while !Task.isCancelled {
                    try await Task.sleep(for: .milliseconds(250))
                    self.expireRequests()
                }
            }
            try await client.run()
            group.cancelAll()
        }
    }

    /// Ends the requests whose deadline has passed.
    package func expireRequests() { ledger.expire(now: clock.now()) }

    /// Whether the broker accepts messages now.
    package var isConnected: Bool { client.isConnected }

    /// Calls the listener on the connection's thread each time the connection is established or lost.
    package func onConnectionChange(_ listener: @escaping @Sendable (Bool) -> Void) {
        connectionListeners.add(listener)
    }

    /// Runs a block of sends, replies and acknowledgements. All of them leave after the block, in as few bodies as
    /// possible. The block must not wait.
    package func batched<Result>(_ sends: () -> Result) -> Result { client.batched(sends) }

    /// Sends one command. The completion is called exactly once, also when sending fails; it must not block. A full
    /// queue ends the request at once: the broker refuses the body, so the command had no effect.
    ///
    /// - Parameter build: makes the command with the given correlation. The bus sets its deadline.
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

    /// Batching delay added for each request in flight. It is about the processor time that a command in a body of its
    /// own costs in all processes, broker and database. So under load a delay makes replies earlier, not later.
    private static let batchingDelayPerRequest = Duration.microseconds(400)
    private static let longestBatchingDelay = Duration.milliseconds(10)
    /// A thread cannot sleep for less, so with few requests in flight a command leaves at once.
    private static let shortestBatchingDelay = Duration.milliseconds(1)

    /// The batching delay of a request while this many requests are in flight.
    static func batchingDelay(inFlight: Int) -> Duration {
        let delay = min(batchingDelayPerRequest * inFlight, longestBatchingDelay)
        return delay < shortestBatchingDelay ? .zero : delay
    }

    /// Sends commands in one body, so that one consumer executes them in this order. Waits for all replies.
    ///
    /// - Parameter build: makes the command of an index with the given correlation. The bus sets its deadline.
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
                    batchingDelay: Self.batchingDelay(inFlight: ledger.count)
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

    /// The deadline of a command that is sent now, by the database's clock; 0 while that clock is unknown.
    private func deadline(within timeout: Duration) -> Int64 {
        databaseTime.time(at: clock.now()).map { ($0 + timeout).milliseconds } ?? 0
    }

    private static func refused(by queue: CommandQueue) -> BusError {
        BusError(.unavailable, "the broker refused the command: queue \(queue.rawValue) is full or unreachable")
    }

    private func route(to queue: CommandQueue) -> AMQPRoute {
        .command(queue, replyTo: replyKeys[queue.answers])
    }

    /// Sends a reply. It is dropped while the broker is unavailable, because the caller's deadline covers that.
    ///
    /// - Parameters:
    ///   - key: the reply address in the command or notice.
    ///   - exchange: the exchange of this tier's replies.
    package func reply(_ reply: Mss_Bus_V1_Reply, to key: String, through exchange: AnswerExchange = .stored) {
        sendOrLog(Mss_Bus_V1_Replies.body([reply]), on: .answer(to: key, through: exchange))
    }

    /// Sends a notice to one gateway. The gateway's sweep finds a lost notice (Design.md#notices-and-pages).
    package func notify(gateway: String, _ notice: Mss_Bus_V1_GatewayNotice) {
        sendOrLog(Mss_Bus_V1_GatewayNotices.body([notice]), on: .notices(gateway))
    }

    /// Sends a notice to one gateway and waits for its reply. The completion is called exactly once and must not block.
    ///
    /// - Parameter build: makes the notice with the given correlation.
    package func notify(
        gateway: String, timeout: Duration, _ build: (UInt64) -> Mss_Bus_V1_GatewayNotice,
        completion: @escaping RequestLedger.Completion
    ) {
        let correlation = ledger.open(deadline: clock.now() + timeout, answeredBy: .taken, completion)
        do throws(AMQPError) {
            let body = Mss_Bus_V1_GatewayNotices.body([build(correlation)])
            try client.send(body, on: .notices(gateway, replyTo: replyKeys[.taken]))
        } catch {
            ledger.close(correlation, with: .failure(BusError(.unavailable, error.message)))
        }
    }

    /// Sends a notice to every gateway. Only for notices that a gateway would otherwise find out later by itself.
    package func notifyEveryGateway(_ notice: Mss_Bus_V1_GatewayNotice) {
        sendOrLog(Mss_Bus_V1_GatewayNotices.body([notice]), on: .everyGateway)
    }

    /// Announces a control version to every process.
    package func announce(controlVersion: Int64) {
        var changes = Mss_Bus_V1_ControlChanges()
        changes.schema = Topology.schemaVersion
        changes.versions = [controlVersion]
        sendOrLog((try? changes.serializedBytes()) ?? [], on: .controlChanges)
    }

    /// Sends facts to the durable queue. The completion says whether the broker has confirmed them.
    ///
    /// - Throws: when nothing was queued, because the broker is unavailable. The caller keeps the facts and repeats.
    package func record(
        _ facts: [Mss_Bus_V1_Fact], whenConfirmed: @escaping @Sendable (Bool) -> Void
    ) throws(AMQPError) {
        try client.send(Mss_Bus_V1_Facts.body(facts), on: .facts) { whenConfirmed($0 == .confirmed) }
    }

    /// The depths of the shared queues; missing queues are left out. For occasional use: each queue costs a round trip
    /// to the broker.
    package func queueDepths() async throws(BusError) -> [String: AMQPQueueDepth] {
        do throws(AMQPError) {
            return try await client.depths(of: Topology.sharedQueues)
        } catch {
            throw BusError(.unavailable, error.message)
        }
    }

    /// Sends a report to every console. It is dropped while the broker is unavailable, because the next one replaces
    /// it.
    private func report(_ report: ProcessReport) {
        sendOrLog(Mss_Bus_V1_ProcessReports.body([report.bus]), on: .reports)
    }

    /// Acknowledges or rejects consumed bodies.
    package func acknowledge(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {
        client.acknowledge(deliveries, as: settlement)
    }

    private func sendOrLog(_ body: [UInt8], on route: AMQPRoute) {
        do throws(AMQPError) {
            try client.send(body, on: route)
        } catch {
            logger.debug("a message was dropped", metadata: ["error": "\(error.message)"])
        }
    }

    private static func complete(
        _ reply: Mss_Bus_V1_Reply, by exchange: AnswerExchange, in ledger: RequestLedger
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

/// The listeners of the connection's state. A class, because the AMQP client is created together with its events.
private final class ConnectionListeners: Sendable {
    private let listeners = Mutex<[@Sendable (Bool) -> Void]>([])

    func add(_ listener: @escaping @Sendable (Bool) -> Void) { listeners.withLock { $0.append(listener) } }

    func notify(isConnected: Bool) {
        for listener in listeners.withLock({ $0 }) { listener(isConnected) }
    }
}
