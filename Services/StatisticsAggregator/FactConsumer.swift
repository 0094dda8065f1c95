import AMQP
import BusMessages
import ConnectionThread
import Logging
import Metrics
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncModel
import SyncStore

/// Takes facts off the durable queue and folds them into the figures, on a thread with its own database connection, and
/// has stored pushes counted.
///
/// That a push was accepted is read off the oplogs themselves: the database counts each exactly once, whichever
/// aggregator asks. A body of facts is settled after the commit of what it said, so a killed process loses nothing;
/// folding is idempotent, so a body that is delivered again counts nothing twice (spec S1). While the database is away
/// the process holds bodies, the prefetch bounds how many, and the rest waits at the broker.
actor FactConsumer: Service {
    /// A body and what it says.
    private struct Facts {
        let delivery: AMQPDelivery
        let facts: [Mss_Bus_V1_Fact]
    }

    /// Bodies in hand: what comes while facts are gathered.
    private static let prefetch: UInt16 = 512
    private static let limit = Duration.seconds(10)
    /// Less than half of what figures may be behind (spec S3).
    private static let gathering = Duration.seconds(2)
    /// What one statement folds: some milliseconds of a processor.
    private static let rowsOfPart = 300
    private static let longestRest = Duration.milliseconds(100)
    private static let watchInterval = Duration.seconds(2)
    /// Between two readings of stored pushes that no batch of facts has started.
    private static let readingInterval = Duration.seconds(3)
    /// Rows of each kind that one step of forgetting removes: some tens of milliseconds.
    private static let forgottenRows = 1_000
    /// Steps between two looks at the most: more than pushes can add rows in that time.
    private static let forgettingSteps = 20
    /// How long nothing is looked for once all was removed.
    private static let forgettingInterval = Duration.seconds(60)

    private let thread = ConnectionThread(name: "statistics")
    private let connection: PostgresConnection
    private let queue = WorkQueue<AMQPDelivery>()
    private let bus: MessageBus
    private let health: HealthState
    private let logger: Logger
    private var pauses = RetryPauses()
    private var progress = FoldProgress()
    private var isSettling = false
    /// When the last reading of stored pushes began.
    private var readAt: ContinuousClock.Instant?
    private var isReading = false
    private var forgetAt = ContinuousClock.now
    private let counted = Counter(label: "mss_statistics_pushes_counted")
    private let folded = Counter(label: "mss_statistics_facts_folded")
    private let rejected = Counter(label: "mss_statistics_bodies_rejected")
    private let unknown = Counter(label: "mss_statistics_facts_unknown")
    private let forgotten = Counter(label: "mss_statistics_rows_forgotten")
    private let lag = Gauge(label: "mss_statistics_lag_seconds")

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, health: HealthState, reporter: ProcessReporter?,
        logger: Logger
    ) {
        // It refuses a database whose migrations differ, each time it connects.
        connection = SyncDatabase.connection(postgres, logger: logger)
        self.health = health
        self.logger = logger
        let queue = queue
        bus = MessageBus(
            configuration: amqp,
            consumptions: [
                AMQPConsumption(queue: Topology.factsQueue, prefetch: Self.prefetch) { queue.add(contentsOf: $0) }
            ], reporter: reporter, logger: logger)
        health.set("amqp", isReady: false)
        health.set("postgres", isReady: false)
        bus.onConnectionChange { health.set("amqp", isReady: $0) }
    }

    /// On shutdown consuming ends first, then what is in hand is folded.
    func run() async throws {
        let (bus, queue) = (bus, queue)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { queue.finish() }
                try await bus.run()
            }
            group.addTask { await self.watch() }
            group.addTask { await self.keepReadingOplogs() }
            group.addTask { await self.consume() }
            try await group.waitForAll()
        }
        connection.close()
        thread.stop()
    }

    private func consume() async {
        while true {
            let deliveries = await queue.take(upTo: Int(Self.prefetch))
            if deliveries.isEmpty { return }
            let bodies = deliveries.compactMap(read)
            isSettling = true
            // When much waits there is no pause.
            let isBehind = deliveries.count == Int(Self.prefetch)
            for group in FactGroups.cut(bodies, size: { FactGroups.rows(of: $0.facts) }) {
                await settle(group, resting: !isBehind)
            }
            isSettling = false
            guard !isBehind else { continue }
            // Facts of one oplog come within moments and change its row once. After them most stored pushes have
            // complete rows, so the reading changes few. It uses the pause, and goes on in `keepReadingOplogs`.
            let end = ContinuousClock.now + Self.gathering
            await readOplogs(until: end)
            try? await cancelWhenGracefulShutdown { try await Task.sleep(until: end, clock: .continuous) }
        }
    }

    private func read(_ delivery: AMQPDelivery) -> Facts? {
        do throws(RejectedBody) {
            return Facts(delivery: delivery, facts: try StatisticsFold.facts(of: delivery.body))
        } catch {
            reject(delivery, because: error.reason)
            return nil
        }
    }

    /// Folds a group and settles it after its commit. What the database does not take now is folded again, however
    /// often: folding is idempotent. It goes back to the broker only when the process ends before the database is there.
    private func settle(_ group: [Facts], resting: Bool) async {
        var plan = BatchPlan<Facts, Never>(group, repeatsMax: .max, isIdempotent: true) { _ in nil }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                do throws(PostgresError) {
                    try await fold(part, resting: resting)
                    bus.settle(part.map(\.delivery), as: .accepted)
                    plan.stored()
                } catch {
                    if error.batchRemedy != .halve { await pause(after: error) }
                    plan.failed(with: error, mayRepeat: !Task.isShuttingDownGracefully && !Task.isCancelled)
                }
            case .refuse(let body, let error): reject(body.delivery, because: error.message)
            case .fail(let part, _): bus.settle(part.map(\.delivery), as: .requeued)
            }
        }
    }

    private func pause(after error: PostgresError) async {
        health.set("postgres", isReady: false)
        logger.warning("facts wait for the database", metadata: ["error": "\(error.message)"])
        let pause = pauses.next(random: .random(in: 0..<1))
        try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
    }

    /// In parts.
    ///
    /// - Parameter resting: it rests after each part.
    private func fold(_ group: [Facts], resting: Bool) async throws(PostgresError) {
        var fold = StatisticsFold()
        for body in group { for fact in body.facts { fold.add(fact) } }
        for part in fold.batch.parts(ofRows: Self.rowsOfPart) where !part.isEmpty {
            let begin = ContinuousClock.now
            try connection.run(StatisticsStore.fold(part), within: Self.limit)
            if resting {
                await rest(afterWorkSince: begin)
            } else {
                // Stored pushes are counted meanwhile.
                await Task.yield()
            }
        }
        pauses.reset()
        health.set("postgres", isReady: true)
        folded.increment(by: group.reduce(0) { $0 + $1.facts.count } - fold.unknownFacts)
        unknown.increment(by: fold.unknownFacts)
        progress.folded(newest: fold.newest)
    }

    /// Pauses for as long as the work took, so that pushes never wait long for a processor.
    private func rest(afterWorkSince begin: ContinuousClock.Instant) async {
        try? await Task.sleep(for: min(begin.duration(to: .now), Self.longestRest))
    }

    /// Has stored pushes counted also while no facts come, or too many. What is not read at the end of the process, the
    /// next one reads.
    private func keepReadingOplogs() async {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let due = readAt.map { $0 + Self.readingInterval } ?? .now
            if due <= .now { await readOplogs(until: nil) }
            // A reading that `consume` has begun may still run: the loop looks again soon.
            let pause = max(.milliseconds(100), ContinuousClock.now.duration(to: due))
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
        }
    }

    /// - Parameter end: no part begins after it; nil: all is read.
    private func readOplogs(until end: ContinuousClock.Instant?) async {
        guard !isReading else { return }
        isReading = true
        defer { isReading = false }
        readAt = .now
        do throws(PostgresError) {
            try await readAccepted(until: end)
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("stored pushes wait to be counted", metadata: ["error": "\(error.message)"])
        }
    }

    /// In parts, between which facts are folded and pushes find a processor.
    private func readAccepted(until end: ContinuousClock.Instant?) async throws(PostgresError) {
        while !Task.isShuttingDownGracefully, !Task.isCancelled, end.map({ .now < $0 }) ?? true {
            let (now, begin) = (WallTime.now, ContinuousClock.now)
            // Without an answer another aggregator reads at this moment, and knows how far.
            let query = StatisticsStore.readAccepted(rows: Self.rowsOfPart)
            guard let reading = try connection.run(query, within: Self.limit) else { return }
            counted.increment(by: reading.pushes)
            guard reading.isBehind else { return progress.read(upto: now) }
            if let newest = reading.newest { progress.read(upto: newest) }
            await rest(afterWorkSince: begin)
        }
    }

    /// In steps, between which facts are folded.
    private func forget() async throws(PostgresError) {
        guard .now >= forgetAt else { return }
        for _ in 0..<Self.forgettingSteps {
            let rows = try connection.run(StatisticsStore.forget(rows: Self.forgottenRows), within: Self.limit)
            forgotten.increment(by: rows)
            guard rows >= Self.forgottenRows else {
                forgetAt = .now + Self.forgettingInterval
                return
            }
            await Task.yield()
        }
    }

    /// The broker moves a rejected body to the dead facts, where someone can look at it.
    private func reject(_ delivery: AMQPDelivery, because reason: String) {
        rejected.increment()
        logger.error(
            "a body of facts was set aside", metadata: ["bytes": "\(delivery.body.count)", "reason": "\(reason)"])
        bus.settle([delivery], as: .rejected)
    }

    /// Shows how far the figures are, also while no facts come in, and forgets what has been kept for its time.
    private func watch() async {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let now = WallTime.now
            progress.looked(isIdle: bus.isConnected && queue.count == 0 && !isSettling, at: now)
            if let seconds = progress.lag(at: now) { lag.record(seconds) }
            do throws(PostgresError) {
                try connection.run(
                    StatisticsStore.noteProgress(upto: progress.upto ?? WallTime(milliseconds: 0)), within: .seconds(3))
                health.set("postgres", isReady: true)
                try await forget()
            } catch {
                health.set("postgres", isReady: false)
                logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
            }
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.watchInterval) }
        }
    }
}
