import ConnectionThread
package import Logging
import ServiceLifecycle
import Synchronization

/// A connection to the broker that reconnects by itself. It connects, declares and consumes. After a failure it waits
/// and starts again.
///
/// All calls of the C library are made in `turn`, on one thread. Other threads only queue work for it.
package final class AMQPClient: AMQPTransport {
    private struct Inquiry: Sendable {
        let queues: [String]
        let complete: @Sendable (Result<[String: AMQPQueueDepth], AMQPError>) -> Void
    }

    /// After this time, the end of a connection does not count as a failed attempt. A first probe may wait as long.
    private static let steadyAfter = QuorumProbe.firstLimit
    /// Maximum number of requests for queue depths that wait.
    private static let inquiriesMax = 100

    private struct Shared {
        var outbox: Outbox
        /// When the waiting messages must be written; nil: none wait.
        var writeAt: ContinuousClock.Instant?
        /// Whether the thread is in a turn. It checks for work again before it sleeps, so a wake-up would only cost
        /// time.
        var isServing = false
        var inquiries: [Inquiry] = []
        var settlements: [(AMQPDelivery, AMQPSettlement)] = []
        var isUp = false
        var isBlocked = false
        /// Number of `batched` blocks in progress.
        var openBatches = 0
        var stopBy: ContinuousClock.Instant?
        var whenStopped: CheckedContinuation<Void, Never>?
        var hasStopped = false

        /// Whether new work must wake the thread. A `batched` block wakes it at its end instead.
        var mustWake: Bool { !isServing && openBatches == 0 }

        /// Whether to write now. A write contains everything that waits.
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
    private let served: Served
    private let thread: Mutex<ConnectionThread?>
    private let watchdog = Watchdog()

    /// Creates the client; nothing connects before `run`.
    package init(
        configuration: AMQPConfiguration, topology: AMQPTopology, consumptions: [AMQPConsumption],
        events: AMQPEvents, logger: Logger
    ) {
        self.configuration = configuration
        self.topology = topology
        self.consumptions = consumptions
        self.events = events
        self.logger = logger
        // Processes that start at the same time spread over the nodes.
        served = Served(firstAddress: .random(in: configuration.addresses.indices))
        shared = Mutex(Shared(outbox: Outbox(packedBodyBytes: configuration.packedBodyBytes)))
        thread = Mutex(nil)
    }

    /// Serves the connection until graceful shutdown or cancellation. On shutdown it stops consuming, waits until
    /// deliveries are acknowledged and messages are written, at most `drainLimit`, and closes.
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
        _ body: [UInt8], on route: AMQPRoute, batchingDelay: Duration,
        whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
    ) throws(AMQPError) {
        let writeAt = ContinuousClock.now + batchingDelay
        let mustWake = try shared.withLock { shared throws(AMQPError) in
            guard shared.isUp, !shared.isBlocked else {
                throw AMQPError(code: .disconnected, message: "the broker is unavailable")
            }
            guard shared.outbox.bytes + body.count <= configuration.waitingBytesMax else {
                throw AMQPError(code: .overloaded, message: "\(shared.outbox.bytes) bytes wait to be written")
            }
            shared.outbox.add(body, on: route, whenConfirmed)
            // The thread already knows an earlier time.
            if let earlier = shared.writeAt, earlier <= writeAt { return false }
            shared.writeAt = writeAt
            return shared.mustWake
        }
        if mustWake { wake() }
    }

    package func acknowledge(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {
        let mustWake = shared.withLock { shared in
            shared.settlements += deliveries.map { ($0, settlement) }
            return shared.mustWake
        }
        if mustWake { wake() }
    }

    package func batched<Result>(_ sends: () -> Result) -> Result {
        shared.withLock { $0.openBatches += 1 }
        defer {
            let mustWake = shared.withLock { shared in
                shared.openBatches -= 1
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
                    return AMQPError(code: .disconnected, message: "the broker is unavailable")
                }
                guard shared.inquiries.count < Self.inquiriesMax else {
                    return AMQPError(code: .overloaded, message: "too many requests for queue depths wait")
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

    /// Time after which a second look decides that the broker is silent.
    private static let secondLook = Duration.milliseconds(100)

    /// State of the connection's thread.
    // Unchecked: it holds the C handle, and only `turn` uses it, on its one thread.
    private final class Served: @unchecked Sendable {
        var connection: AMQPConnection?
        var generation: UInt64 = 0
        /// The address of the next attempt.
        var nextAddress: Int
        var ledger = ConfirmLedger()
        var settlements = SettlementLedger()
        var schedule = ReconnectSchedule()
        var connectAt = ContinuousClock.now
        var lastTurn = ContinuousClock.now
        var connectedAt = ContinuousClock.now
        var hasCancelled = false
        /// The broker's silence has passed the limit since this look.
        var silentSince: ContinuousClock.Instant?
        /// Probes of this connection, or of the last one; nil without a route for them.
        var probe: QuorumProbe?

        init(firstAddress: Int) { nextAddress = firstAddress }
    }

    /// One turn: connect if there is no connection, otherwise read and write until nothing is left.
    private func turn() -> ConnectionThread.Sleep {
        let state = served
        let stopBy = shared.withLock { $0.stopBy }
        if state.connection == nil {
            if stopBy != nil { return stopped() }
            if .now >= state.connectAt { connect(state) }
        }
        let now = ContinuousClock.now
        var untilLook = configuration.heartbeat / 2
        do throws(AMQPError) {
            // During a pause of this process, the broker has redelivered the deliveries to other consumers.
            if state.connection != nil, state.lastTurn.duration(to: now) > configuration.heartbeat * 3 {
                throw AMQPError(code: .connection, message: "this process was paused")
            }
            state.lastTurn = now
            if state.connection != nil {
                if stopBy == nil { probe(state, now) }
                try serve(state, stopBy: stopBy)
            }
            if let connection = state.connection {
                untilLook = min(untilLook, try checkSilence(of: connection, state, now))
            }
        } catch {
            disconnect(state, error)
        }
        if state.connection == nil, stopBy != nil { return stopped() }
        guard let connection = state.connection else {
            return ConnectionThread.Sleep(
                descriptor: nil, limit: max(.zero, ContinuousClock.now.duration(to: state.connectAt)))
        }
        let limit = stopBy == nil ? untilLook : .milliseconds(20)
        let untilWriting = shared.withLock { $0.writeAt }.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
        return ConnectionThread.Sleep(descriptor: connection.descriptor, limit: min(limit, untilWriting ?? limit))
    }

    /// Sends a probe, if one is due.
    private func probe(_ state: Served, _ now: ContinuousClock.Instant) {
        guard let route = configuration.probe else { return }
        guard isConnected else {
            state.probe?.pause(at: now)
            return
        }
        guard state.probe?.sends(at: now) == true else { return }
        shared.withLock { shared in
            shared.outbox.add([], on: route) { state.probe?.end($0) }
            shared.writeAt = now
        }
    }

    /// Gives up a silent broker, or a node that has lost the others. After a pause of this machine the clock is ahead
    /// of the data that waited in the network, so a second look decides.
    ///
    /// - Returns: the time until the next look.
    private func checkSilence(
        of connection: AMQPConnection, _ state: Served, _ now: ContinuousClock.Instant
    ) throws(AMQPError) -> Duration {
        let silence = connection.silence
        let isCutOff = state.probe?.hasFailed(at: now) ?? false
        guard silence >= configuration.silenceLimit || isCutOff else {
            state.silentSince = nil
            let untilLook = configuration.silenceLimit - silence
            return max(Self.secondLook, min(untilLook, state.probe?.untilNext(at: now) ?? untilLook))
        }
        let since = state.silentSince ?? now
        if since.duration(to: now) >= Self.secondLook {
            let reason =
                isCutOff
                ? "the broker's node does not reach the other nodes"
                : "the broker was silent for \(silence)"
            throw AMQPError(code: .connection, message: reason)
        }
        state.silentSince = since
        return Self.secondLook
    }

    private func connect(_ state: Served) {
        state.generation += 1
        let address = configuration.addresses[state.nextAddress]
        state.nextAddress = (state.nextAddress + 1) % configuration.addresses.count
        // One broker refuses the name of a queue whose connection it has not given up. That keeps a second process of
        // the same id out. A cluster refuses it also after the loss of the queue's node, perhaps for ever.
        let suffix = "." + String(UInt64.random(in: 0...UInt64.max), radix: 36)
        let hasOthers = configuration.addresses.count > 1
        let names = hasOthers ? topology.exclusiveNames(endingWith: suffix) : [:]
        // A node that hangs must not hold a client for long that could connect to another one.
        let limit = hasOthers ? min(state.schedule.patience, configuration.callLimit) : configuration.callLimit
        do throws(AMQPError) {
            let connection = try AMQPConnection(
                configuration, at: address, generation: state.generation, watchdog: watchdog, limit: limit)
            try connection.declare(topology.renaming(names), as: configuration.queueType)
            try connection.consume(consumptions.map { $0.renaming(names) })
            connection.limitCalls(to: configuration.callLimit)
            watchdog.expect(by: nil)
            state.connection = connection
            state.settlements = SettlementLedger()
            state.silentSince = nil
            state.lastTurn = .now
            state.connectedAt = .now
            state.probe = configuration.probe.map { _ in QuorumProbe(now: .now, after: state.probe) }
            shared.withLock { shared in
                shared.isUp = true
                shared.isBlocked = false
            }
            logger.info(
                "connected to RabbitMQ", metadata: ["host": "\(address.host)", "port": "\(address.port)"])
            events.onConnected()
        } catch {
            postpone(state)
            logger.warning(
                "no connection to RabbitMQ", metadata: ["address": "\(address)", "error": "\(error.message)"])
        }
    }

    private func serve(_ state: Served, stopBy: ContinuousClock.Instant?) throws(AMQPError) {
        guard let connection = state.connection else { return }
        defer { watchdog.expect(by: nil) }
        shared.withLock { $0.isServing = true }
        repeat {
            watchdog.expect(by: .now + configuration.callLimit)
            state.lastTurn = .now
            try read(connection, state)
            try write(connection, state)
            try answerInquiries(connection)
        } while connection.hasBufferedInput || isDueBeforeSleep()
        guard let stopBy else { return }
        if !state.hasCancelled {
            state.hasCancelled = true
            // Replies still arrive, because commands in work can need them.
            try connection.cancelConsumers(consumptions.indices.filter { consumptions[$0].prefetch != nil })
            return
        }
        guard (state.settlements.isEmpty && state.ledger.isEmpty) || stopBy <= .now else { return }
        watchdog.expect(by: .now + .seconds(1))
        connection.close()
        throw AMQPError(code: .disconnected, message: "shutting down")
    }

    /// Whether there is more to write. If not, new work wakes the thread from now on.
    private func isDueBeforeSleep() -> Bool {
        shared.withLock { shared in
            shared.isServing = shared.isDue
            return shared.isServing
        }
    }

    private func read(_ connection: AMQPConnection, _ state: Served) throws(AMQPError) {
        var deliveries: [Int: [AMQPDelivery]] = [:]
        var foreign: [AMQPDelivery] = []
        var confirmations: [(Outbox.Confirmation, PublishOutcome)] = []
        // Bounded, so that much input does not delay output.
        for _ in 0..<256 {
            guard let incoming = try connection.receive() else { break }
            switch incoming {
            case .delivery(let consumer, let delivery):
                guard consumptions.indices.contains(consumer) else { continue }
                if consumptions[consumer].prefetch != nil { state.settlements.recordDelivery(delivery.deliveryTag) }
                guard consumptions[consumer].permits(delivery.exchange) else {
                    foreign.append(delivery)
                    continue
                }
                deliveries[consumer, default: []].append(delivery)
            case .returned(let exchange, let routingKey, let body):
                let route = AMQPRoute(
                    exchange: exchange, routingKey: routingKey, expiration: nil, isPersistent: false,
                    isMandatory: true, replyTo: nil)
                events.onReturned(route, body)
            case .confirmed(let tag, let multiple, let isAck):
                let outcome: PublishOutcome = isAck ? .confirmed : .refused
                confirmations += state.ledger.removeConfirmed(tag, multiple: multiple).map { ($0, outcome) }
            case .blocked(let isBlocked):
                shared.withLock { $0.isBlocked = isBlocked }
                logger.warning("the broker changed its flow control", metadata: ["isBlocked": "\(isBlocked)"])
            }
        }
        let readBodies = deliveries.values.reduce(0) { $0 + $1.count }
        if readBodies > 0 { events.onTraffic(0, readBodies) }
        if !foreign.isEmpty { reject(foreign) }
        for (consumer, group) in deliveries { consumptions[consumer].handler(group) }
        for (confirmation, outcome) in confirmations { confirmation(outcome) }
    }

    /// Rejects messages from an exchange that a foreign user has bound to the queue.
    private func reject(_ foreign: [AMQPDelivery]) {
        for (exchange, deliveries) in Dictionary(grouping: foreign, by: \.exchange) {
            logger.error(
                "rejected messages from an unauthorized exchange",
                metadata: ["exchange": "\(exchange)", "count": "\(deliveries.count)"])
        }
        acknowledge(foreign, as: .rejected)
    }

    private func write(_ connection: AMQPConnection, _ state: Served) throws(AMQPError) {
        let due = shared.withLock { shared -> ([Outbox.Packed], [(AMQPDelivery, AMQPSettlement)])? in
            guard shared.isDue else { return nil }
            defer {
                shared.settlements = []
                shared.writeAt = nil
            }
            return (shared.outbox.removeAll(), shared.settlements)
        }
        guard let (messages, settled) = due else { return }
        if !messages.isEmpty { events.onTraffic(messages.count, 0) }
        // Deliveries of an older connection were redelivered to other consumers.
        let frames = state.settlements.acknowledge(
            settled.filter { $0.0.generation == state.generation }.map { ($0.0.deliveryTag, $0.1) })
        // Messages of one write are sent in as few TCP segments as possible, because each segment wakes the broker.
        let isHeld = messages.count + frames.count > 1
        if isHeld { connection.holdOutput(true) }
        defer { if isHeld { connection.holdOutput(false) } }
        for (number, message) in messages.enumerated() {
            let isConfirmed = !message.confirmations.isEmpty
            if isConfirmed { state.ledger.recordPublished(message.confirmations) }
            do throws(AMQPError) {
                try connection.publish(message.body, on: message.route, confirmed: isConfirmed)
            } catch {
                // The later messages were removed from the outbox and are not written: their callbacks must be called.
                for confirmation in messages.dropFirst(number + 1).flatMap(\.confirmations) { confirmation(.refused) }
                throw error
            }
        }
        for frame in frames { try connection.acknowledge(frame) }
    }

    private func answerInquiries(_ connection: AMQPConnection) throws(AMQPError) {
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

    private func disconnect(_ state: Served, _ error: AMQPError) {
        state.connection = nil
        // A broker that ends each new connection at once must not be asked again and again without a pause.
        if state.connectedAt.duration(to: .now) >= Self.steadyAfter { state.schedule.succeeded() }
        postpone(state)
        let (dropped, inquiries) = shared.withLock { shared in
            shared.isUp = false
            shared.isServing = false
            shared.writeAt = nil
            shared.settlements = []
            defer { shared.inquiries = [] }
            return (shared.outbox.removeAll(), shared.inquiries)
        }
        for inquiry in inquiries { inquiry.complete(.failure(error)) }
        let level = error.code == .disconnected ? Logger.Level.info : .warning
        logger.log(level: level, "the connection to RabbitMQ ended", metadata: ["reason": "\(error.message)"])
        for confirmation in dropped.flatMap(\.confirmations) { confirmation(.refused) }
        for confirmation in state.ledger.removeAll() { confirmation(.unknown) }
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

/// The pauses between connection attempts: short at first, then with jitter up to 3 s; pure.
struct ReconnectSchedule {
    private static let first = Duration.milliseconds(100)
    private static let ceiling = Duration.seconds(3)
    private var failures = 0

    /// The pause before the next attempt.
    ///
    /// - Parameter random: from 0 to below 1.
    mutating func pauseAfterFailure(random: Double) -> Duration {
        let limit = min(Self.ceiling, Self.first * (1 << min(failures, 10)))
        failures += 1
        return limit / 2 + limit / 2 * random
    }

    /// How long an attempt may last where another address is next: 1 s at first, twice as long after each failed
    /// attempt. The loss of a connection counts as the first failure here.
    var patience: Duration { .seconds(1 << min(max(failures - 1, 0), 10)) }

    /// Resets the pauses after a successful connection.
    mutating func succeeded() { failures = 0 }
}
