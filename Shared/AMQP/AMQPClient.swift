import ConnectionThread
package import Logging
import ServiceLifecycle
import Synchronization

/// A connection to the broker that heals by itself: it connects, declares, consumes, and starts over with a pause
/// whenever anything fails.
///
/// Everything that touches the C library happens in `turn`, on one thread. Other threads only leave work for it.
package final class AMQPClient: AMQPTransport {
    private struct Inquiry: Sendable {
        let queues: [String]
        let complete: @Sendable (Result<[String: AMQPQueueDepth], AMQPError>) -> Void
    }

    /// Inquiries that may wait at a time.
    private static let inquiriesMax = 100

    private struct Shared {
        var outbox: Outbox
        /// When what waits is to be written; nil: nothing waits.
        var writeAt: ContinuousClock.Instant?
        /// The thread is in a turn and looks at all this again before it sleeps: waking it would only cost one more.
        var isServing = false
        var inquiries: [Inquiry] = []
        var settlements: [(AMQPDelivery, AMQPSettlement)] = []
        var isUp = false
        var isBlocked = false
        /// Blocks of `together` that are under way.
        var gatherings = 0
        var stopBy: ContinuousClock.Instant?
        var whenStopped: CheckedContinuation<Void, Never>?
        var hasStopped = false

        /// Whether somebody who leaves something has to wake the thread; who is in a block of `together` does so at its
        /// end.
        var mustWake: Bool { !isServing && gatherings == 0 }

        /// Whether there is something to write now; what is written leaves with all that waits.
        var isDue: Bool {
            guard settlements.isEmpty, stopBy == nil else { return !settlements.isEmpty || writeAt != nil }
            return writeAt.map { $0 <= .now } ?? false
        }
    }

    private let configuration: AMQPConfiguration
    private let topology: AMQPTopology
    private let consumptions: [AMQPConsumption]
    private let events: AMQPEvents
    private let logger: Logger
    private let shared: Mutex<Shared>
    private let served = Served()
    private let thread: Mutex<ConnectionThread?>
    private let watchdog = Watchdog()

    /// Describes the connection; nothing happens before `run`.
    package init(
        configuration: AMQPConfiguration, topology: AMQPTopology, consumptions: [AMQPConsumption],
        events: AMQPEvents, logger: Logger
    ) {
        self.configuration = configuration
        self.topology = topology
        self.consumptions = consumptions
        self.events = events
        self.logger = logger
        shared = Mutex(Shared(outbox: Outbox(packedBodyBytes: configuration.packedBodyBytes)))
        thread = Mutex(nil)
    }

    /// Serves the connection until graceful shutdown or cancellation. On shutdown it stops consuming, waits a bounded
    /// time until what it consumed is settled and what waits is written, and closes.
    package func run() async throws {
        let connectionThread = ConnectionThread(name: "amqp") { [self] in turn() }
        thread.withLock { $0 = connectionThread }
        await withTaskCancellationOrGracefulShutdownHandler {
            await withCheckedContinuation { continuation in
                let hasStopped = shared.withLock { shared in
                    if !shared.hasStopped { shared.whenStopped = continuation }
                    return shared.hasStopped
                }
                if hasStopped { continuation.resume() }
            }
        } onCancelOrGracefulShutdown: {
            self.shared.withLock { $0.stopBy = $0.stopBy ?? .now + self.configuration.drainLimit }
            connectionThread.wake()
        }
        thread.withLock { $0 = nil }
        connectionThread.stop()
        watchdog.stop()
    }

    package var isConnected: Bool { shared.withLock { $0.isUp && !$0.isBlocked } }

    package func send(
        _ body: [UInt8], on route: AMQPRoute, patience: Duration, whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
    ) throws(AMQPError) {
        let writeAt = ContinuousClock.now + patience
        let mustWake = try shared.withLock { shared throws(AMQPError) in
            guard shared.isUp, !shared.isBlocked else {
                throw AMQPError(code: .disconnected, message: "the broker is away")
            }
            guard shared.outbox.bytes + body.count <= configuration.waitingBytesMax else {
                throw AMQPError(code: .overloaded, message: "\(shared.outbox.bytes) bytes wait to be written")
            }
            shared.outbox.add(body, on: route, whenConfirmed)
            // The thread has been told of what is to leave earlier.
            if let earlier = shared.writeAt, earlier <= writeAt { return false }
            shared.writeAt = writeAt
            return shared.mustWake
        }
        if mustWake { wake() }
    }

    package func settle(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {
        let mustWake = shared.withLock { shared in
            shared.settlements += deliveries.map { ($0, settlement) }
            return shared.mustWake
        }
        if mustWake { wake() }
    }

    package func together<Result>(_ sends: () -> Result) -> Result {
        shared.withLock { $0.gatherings += 1 }
        defer {
            let mustWake = shared.withLock { shared in
                shared.gatherings -= 1
                return (shared.writeAt != nil || !shared.settlements.isEmpty) && !shared.isServing
            }
            if mustWake { wake() }
        }
        return sends()
    }

    package func depths(of queues: [String]) async throws(AMQPError) -> [String: AMQPQueueDepth] {
        let result = await withCheckedContinuation { continuation in
            let inquiry = Inquiry(queues: queues) { continuation.resume(returning: $0) }
            let failure = shared.withLock { shared -> AMQPError? in
                guard shared.isUp, !shared.isBlocked else {
                    return AMQPError(code: .disconnected, message: "the broker is away")
                }
                guard shared.inquiries.count < Self.inquiriesMax else {
                    return AMQPError(code: .overloaded, message: "too many ask about queues")
                }
                shared.inquiries.append(inquiry)
                return nil
            }
            if let failure { return inquiry.complete(.failure(failure)) }
            wake()
        }
        return try result.get()
    }

    private func wake() { thread.withLock { $0 }?.wake() }

    // MARK: On the connection's thread

    /// What only the connection's thread looks at.
    // Unchecked: it holds the C handle and is touched in `turn` alone, on the one thread that calls it.
    private final class Served: @unchecked Sendable {
        var connection: AMQPConnection?
        var generation: UInt64 = 0
        var ledger = ConfirmLedger()
        var settlements = SettlementLedger()
        var schedule = ReconnectSchedule()
        var connectAt = ContinuousClock.now
        var lastTurn = ContinuousClock.now
        var hasCancelled = false
    }

    /// One turn: connect if there is no connection, otherwise read and write until nothing is left.
    private func turn() -> ConnectionThread.Sleep {
        let state = served
        let now = ContinuousClock.now
        let stopBy = shared.withLock { $0.stopBy }
        if state.connection == nil {
            if stopBy != nil { return stopped() }
            if now >= state.connectAt { connect(state) }
        }
        do throws(AMQPError) {
            // A process that was paused holds deliveries that the broker has given to others.
            if state.connection != nil, state.lastTurn.duration(to: now) > configuration.heartbeat * 3 {
                throw AMQPError(code: .connection, message: "this process did not run for a while")
            }
            state.lastTurn = now
            if state.connection != nil { try serve(state, stopBy: stopBy) }
        } catch {
            fall(state, error)
        }
        if state.connection == nil, stopBy != nil { return stopped() }
        guard let connection = state.connection else {
            return ConnectionThread.Sleep(
                descriptor: nil, limit: max(.zero, ContinuousClock.now.duration(to: state.connectAt)))
        }
        let limit = stopBy == nil ? configuration.heartbeat / 2 : .milliseconds(20)
        let untilWriting = shared.withLock { $0.writeAt }.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
        return ConnectionThread.Sleep(descriptor: connection.descriptor, limit: min(limit, untilWriting ?? limit))
    }

    private func connect(_ state: Served) {
        state.generation += 1
        do throws(AMQPError) {
            let connection = try AMQPConnection(configuration, generation: state.generation, watchdog: watchdog)
            try connection.declare(topology)
            try connection.consume(consumptions)
            watchdog.expect(by: nil)
            state.connection = connection
            state.schedule.succeeded()
            state.settlements = SettlementLedger()
            state.lastTurn = .now
            shared.withLock { shared in
                shared.isUp = true
                shared.isBlocked = false
            }
            logger.info(
                "connected to RabbitMQ", metadata: ["host": "\(configuration.host)", "port": "\(configuration.port)"])
            events.onConnected()
        } catch {
            postpone(state)
            logger.warning("no connection to RabbitMQ", metadata: ["error": "\(error.message)"])
        }
    }

    private func serve(_ state: Served, stopBy: ContinuousClock.Instant?) throws(AMQPError) {
        guard let connection = state.connection else { return }
        defer { watchdog.expect(by: nil) }
        shared.withLock { $0.isServing = true }
        repeat {
            watchdog.expect(by: .now + configuration.callLimit)
            try read(connection, state)
            try write(connection, state)
            try inquire(connection)
        } while connection.hasBufferedInput || isDueBeforeSleep()
        guard let stopBy else { return }
        if !state.hasCancelled {
            state.hasCancelled = true
            try connection.cancelConsumers(count: consumptions.count)
            return
        }
        guard (state.settlements.isEmpty && state.ledger.isEmpty) || stopBy <= .now else { return }
        watchdog.expect(by: .now + .seconds(1))
        connection.close()
        throw AMQPError(code: .disconnected, message: "shutting down")
    }

    /// Whether there is more to write; if not, whoever leaves something from now on wakes the thread.
    private func isDueBeforeSleep() -> Bool {
        shared.withLock { shared in
            shared.isServing = shared.isDue
            return shared.isServing
        }
    }

    private func read(_ connection: AMQPConnection, _ state: Served) throws(AMQPError) {
        var deliveries: [Int: [AMQPDelivery]] = [:]
        var foreign: [AMQPDelivery] = []
        var replies: [[UInt8]] = []
        var confirmations: [(Outbox.Confirmation, PublishOutcome)] = []
        // Bounded, so that a flood of input does not keep output waiting.
        for _ in 0..<256 {
            guard let incoming = try connection.receive() else { break }
            switch incoming {
            case .delivery(let consumer, let delivery):
                guard consumptions.indices.contains(consumer) else { continue }
                if consumptions[consumer].prefetch != nil { state.settlements.delivered(delivery.deliveryTag) }
                guard consumptions[consumer].permits(delivery.exchange) else {
                    foreign.append(delivery)
                    continue
                }
                deliveries[consumer, default: []].append(delivery)
            case .reply(let body): replies.append(body)
            case .returned(let exchange, let routingKey, let body):
                let route = AMQPRoute(
                    exchange: exchange, routingKey: routingKey, expiration: nil, isPersistent: false,
                    isMandatory: true, replyTo: nil)
                events.onReturned(route, body)
            case .confirmed(let tag, let multiple, let isAck):
                let outcome: PublishOutcome = isAck ? .confirmed : .refused
                confirmations += state.ledger.settled(tag, multiple: multiple).map { ($0, outcome) }
            case .blocked(let isBlocked):
                shared.withLock { $0.isBlocked = isBlocked }
                logger.warning("the broker changed its flow control", metadata: ["isBlocked": "\(isBlocked)"])
            }
        }
        let readBodies = deliveries.values.reduce(replies.count) { $0 + $1.count }
        if readBodies > 0 { events.onTraffic(0, readBodies) }
        if !foreign.isEmpty { reject(foreign) }
        if !replies.isEmpty { events.onReplies(replies) }
        for (consumer, group) in deliveries { consumptions[consumer].handler(group) }
        for (confirmation, outcome) in confirmations { confirmation(outcome) }
    }

    /// Somebody has bound a queue to an exchange that does not lead to it.
    private func reject(_ foreign: [AMQPDelivery]) {
        for (exchange, deliveries) in Dictionary(grouping: foreign, by: \.exchange) {
            logger.error(
                "rejected messages from an unauthorized exchange",
                metadata: ["exchange": "\(exchange)", "count": "\(deliveries.count)"])
        }
        settle(foreign, as: .rejected)
    }

    private func write(_ connection: AMQPConnection, _ state: Served) throws(AMQPError) {
        let due = shared.withLock { shared -> ([Outbox.Packed], [(AMQPDelivery, AMQPSettlement)])? in
            guard shared.isDue else { return nil }
            defer {
                shared.settlements = []
                shared.writeAt = nil
            }
            return (shared.outbox.takeAll(), shared.settlements)
        }
        guard let (messages, settled) = due else { return }
        if !messages.isEmpty { events.onTraffic(messages.count, 0) }
        // Those of an older connection are with others by now.
        let frames = state.settlements.settle(
            settled.filter { $0.0.generation == state.generation }.map { ($0.0.deliveryTag, $0.1) })
        // What goes out together leaves in as few segments as can be: each wakes the broker.
        let isGathered = messages.count + frames.count > 1
        if isGathered { connection.gather(true) }
        defer { if isGathered { connection.gather(false) } }
        for (number, message) in messages.enumerated() {
            let isConfirmed = !message.confirmations.isEmpty || message.route.replyTo == AMQPRoute.straightBack
            if isConfirmed { state.ledger.published(message.confirmations) }
            do throws(AMQPError) {
                try connection.publish(message.body, on: message.route, confirmed: isConfirmed)
            } catch {
                // Those after this one were taken and will not be written: their owners must hear of it.
                for confirmation in messages.dropFirst(number + 1).flatMap(\.confirmations) { confirmation(.refused) }
                throw error
            }
        }
        for frame in frames { try connection.settle(frame) }
    }

    private func inquire(_ connection: AMQPConnection) throws(AMQPError) {
        let inquiries = shared.withLock { shared in
            defer { shared.inquiries = [] }
            return shared.inquiries
        }
        for (number, inquiry) in inquiries.enumerated() {
            watchdog.expect(by: .now + configuration.callLimit)
            do throws(AMQPError) {
                inquiry.complete(.success(try connection.depths(of: inquiry.queues)))
            } catch {
                guard error.code != .refused else {
                    inquiry.complete(.failure(error))
                    continue
                }
                for unanswered in inquiries[number...] { unanswered.complete(.failure(error)) }
                throw error
            }
        }
    }

    private func fall(_ state: Served, _ error: AMQPError) {
        state.connection = nil
        postpone(state)
        let (dropped, inquiries) = shared.withLock { shared in
            shared.isUp = false
            shared.isServing = false
            shared.writeAt = nil
            shared.settlements = []
            defer { shared.inquiries = [] }
            return (shared.outbox.takeAll(), shared.inquiries)
        }
        for inquiry in inquiries { inquiry.complete(.failure(error)) }
        let level = error.code == .disconnected ? Logger.Level.info : .warning
        logger.log(level: level, "the connection to RabbitMQ ended", metadata: ["reason": "\(error.message)"])
        for confirmation in dropped.flatMap(\.confirmations) { confirmation(.refused) }
        for confirmation in state.ledger.abandon() { confirmation(.unknown) }
        events.onDisconnected()
    }

    private func postpone(_ state: Served) {
        state.connectAt = .now + state.schedule.pauseAfterFailure(random: .random(in: 0..<1))
    }

    private func stopped() -> ConnectionThread.Sleep {
        shared.withLock { shared in
            shared.hasStopped = true
            defer { shared.whenStopped = nil }
            return shared.whenStopped
        }?.resume()
        return ConnectionThread.Sleep(descriptor: nil, limit: nil)
    }
}
