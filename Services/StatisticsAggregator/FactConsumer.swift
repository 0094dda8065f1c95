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

/// Consumes facts from the durable queue and folds them into the figures, on a thread and a database connection of its
/// own. Also makes the database count stored pushes.
///
/// No fact says that a push was accepted. The database reads that from the oplogs and counts each once, whichever
/// aggregator asks. A body of facts is acknowledged after the commit of its facts, so a killed process loses nothing.
/// Folding is idempotent, so a redelivered body changes no figure (S1). While the database is down, the process keeps
/// the bodies that it has, bounded by the prefetch; the others wait at the broker.
actor FactConsumer: Service {
    /// A body and its facts.
    private struct Facts {
        let delivery: AMQPDelivery
        let facts: [Mss_Bus_V1_Fact]
    }

    /// Bodies that RabbitMQ delivers before their acknowledgement; enough for those that arrive during one gathering.
    private static let prefetch: UInt16 = 512
    private static let limit = Duration.seconds(10)
    /// The pause in which facts are gathered; less than half of the permitted delay of figures (S3).
    private static let gathering = Duration.seconds(2)
    /// The largest number of rows in one statement: some milliseconds of a processor.
    private static let rowsOfPart = 300
    private static let longestRest = Duration.milliseconds(100)
    private static let watchInterval = Duration.seconds(2)
    /// The largest number of rows of each kind that one deletion removes: some tens of milliseconds.
    private static let forgottenRows = 1_000
    /// The largest number of deletions in one interval; they remove more rows than pushes can add in that time.
    private static let forgettingSteps = 20
    /// The pause after everything expired was deleted.
    private static let forgettingInterval = Duration.seconds(60)

    private let thread = ConnectionThread(name: "statistics")
    private let connection: PostgresConnection
    private let queue = WorkQueue<AMQPDelivery>()
    private let bus: MessageBus
    private let health: HealthState
    private let logger: Logger
    private var pauses = RetryPauses()
    private var progress = FoldProgress()
    private var isFolding = false
    private var readings = OplogReadings()
    private var forgetAt = ContinuousClock.now
    private let metrics = StatisticsMetrics()

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, health: HealthState, reporter: ProcessReporter?,
        logger: Logger
    ) {
        // The connection refuses a database with other migrations, each time it connects.
        connection = SyncDatabase.connection(postgres, logger: logger)
        self.health = health
        self.logger = logger
        let queue = queue
        bus = MessageBus(
            configuration: amqp,
            consumptions: [
                AMQPConsumption(queue: Topology.factsQueue, prefetch: Self.prefetch) { queue.add(contentsOf: $0) }
            ], answers: [], reporter: reporter, logger: logger)
        health.set("amqp", isReady: false)
        health.set("postgres", isReady: false)
        bus.onConnectionChange { health.set("amqp", isReady: $0) }
    }

    /// On shutdown, the process first stops consuming. Then it folds the bodies that it has received.
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
            let deliveries = await queue.dequeue(upTo: Int(Self.prefetch))
            if deliveries.isEmpty { return }
            let bodies = deliveries.compactMap(read)
            isFolding = true
            // No pauses while many bodies wait.
            let isBehind = deliveries.count == Int(Self.prefetch)
            for group in FactGroups.cut(bodies, size: { FactGroups.rows(of: $0.facts) }) {
                await foldAndAcknowledge(group, pausing: !isBehind)
            }
            isFolding = false
            guard !isBehind else { continue }
            // Facts of one oplog arrive within moments, so gathering changes its row once. After a fold most stored
            // pushes have complete rows, so the reading changes few of them. It uses the pause, and `keepReadingOplogs`
            // continues it.
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

    /// Folds a group and acknowledges its bodies after the commit. While the database is down, the group is folded
    /// again and again: folding is idempotent. The bodies return to the broker only if the process ends before the
    /// database is back.
    private func foldAndAcknowledge(_ group: [Facts], pausing: Bool) async {
        var plan = BatchPlan<Facts, Never>(group, repeatsMax: .max, isIdempotent: true) { _ in nil }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                do throws(PostgresError) {
                    try await fold(part, pausing: pausing)
                    bus.acknowledge(part.map(\.delivery), as: .accepted)
                    plan.stored()
                } catch {
                    if error.batchRemedy != .halve { await pause(after: error) }
                    plan.failed(with: error, mayRepeat: !Task.isShuttingDownGracefully && !Task.isCancelled)
                }
            case .refuse(let body, let error): reject(body.delivery, because: error.message)
            case .fail(let part, _): bus.acknowledge(part.map(\.delivery), as: .requeued)
            }
        }
    }

    private func pause(after error: PostgresError) async {
        health.set("postgres", isReady: false)
        logger.warning(
            "facts were not folded because the database is not ready; retrying", metadata: ["error": "\(error.message)"]
        )
        let pause = pauses.next(random: .random(in: 0..<1))
        try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
    }

    /// Folds in parts.
    ///
    /// - Parameter pausing: pauses after each part.
    private func fold(_ group: [Facts], pausing: Bool) async throws(PostgresError) {
        var fold = StatisticsFold()
        for body in group { for fact in body.facts { fold.add(fact) } }
        for part in fold.batch.parts(ofRows: Self.rowsOfPart) where !part.isEmpty {
            let begin = ContinuousClock.now
            try connection.run(StatisticsStore.fold(part), within: Self.limit)
            if pausing {
                await rest(afterWorkSince: begin)
            } else {
                // Lets the reading of stored pushes run in between.
                await Task.yield()
            }
        }
        pauses.reset()
        health.set("postgres", isReady: true)
        metrics.folded.increment(by: group.reduce(0) { $0 + $1.facts.count } - fold.unknownFacts)
        metrics.unknown.increment(by: fold.unknownFacts)
        progress.folded(newest: fold.newest)
    }

    /// Pauses for as long as the work took, so that pushes never wait long for a processor.
    private func rest(afterWorkSince begin: ContinuousClock.Instant) async {
        try? await Task.sleep(for: min(begin.duration(to: .now), Self.longestRest))
    }

    /// Reads stored pushes also while no facts arrive, or so many that `consume` never pauses. The next process reads
    /// the rest after a shutdown.
    private func keepReadingOplogs() async {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let due = readings.due ?? .now
            if due <= .now { await readOplogs(until: nil) }
            // A reading by `consume` may still run, so the loop checks again soon.
            let pause = max(.milliseconds(100), ContinuousClock.now.duration(to: due))
            try? await cancelWhenGracefulShutdown { try await Task.sleep(for: pause) }
        }
    }

    /// - Parameter end: no part begins after this time; nil: everything is read.
    private func readOplogs(until end: ContinuousClock.Instant?) async {
        guard readings.begin(at: .now) else { return }
        defer { readings.end() }
        do throws(PostgresError) {
            try await readAccepted(until: end)
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("stored pushes were not counted; retrying", metadata: ["error": "\(error.message)"])
        }
    }

    /// Reads in parts. In between, facts are folded and pushes get a processor.
    private func readAccepted(until end: ContinuousClock.Instant?) async throws(PostgresError) {
        while !Task.isShuttingDownGracefully, !Task.isCancelled, end.map({ .now < $0 }) ?? true {
            let (now, begin) = (WallTime.now, ContinuousClock.now)
            // Without a result, another aggregator is reading now, and it records the progress.
            let query = StatisticsStore.readAccepted(rows: Self.rowsOfPart)
            guard let reading = try connection.run(query, within: Self.limit) else { return }
            metrics.counted.increment(by: reading.pushes)
            guard reading.isBehind else { return progress.read(upto: now) }
            if let newest = reading.newest { progress.read(upto: newest) }
            await rest(afterWorkSince: begin)
        }
    }

    /// Deletes expired statistics in steps, between which facts are folded.
    private func forget() async throws(PostgresError) {
        guard .now >= forgetAt else { return }
        for _ in 0..<Self.forgettingSteps {
            let rows = try connection.run(StatisticsStore.forget(rows: Self.forgottenRows), within: Self.limit)
            metrics.forgotten.increment(by: rows)
            guard rows >= Self.forgottenRows else {
                forgetAt = .now + Self.forgettingInterval
                return
            }
            await Task.yield()
        }
    }

    /// Rejects a body. The broker moves it to the queue of rejected facts, where an operator can inspect it.
    private func reject(_ delivery: AMQPDelivery, because reason: String) {
        metrics.rejected.increment()
        logger.error(
            "rejected a body of facts", metadata: ["bytes": "\(delivery.body.count)", "reason": "\(reason)"])
        bus.acknowledge([delivery], as: .rejected)
    }

    /// Publishes the progress of the figures, also while no facts arrive, and deletes expired statistics.
    private func watch() async {
        while !Task.isShuttingDownGracefully, !Task.isCancelled {
            let now = WallTime.now
            progress.checked(isIdle: bus.isConnected && queue.count == 0 && !isFolding, at: now)
            if let seconds = progress.lag(at: now) { metrics.lag.record(seconds) }
            do throws(PostgresError) {
                try connection.run(
                    StatisticsStore.recordProgress(upto: progress.upto ?? WallTime(milliseconds: 0)),
                    within: .seconds(3))
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

/// The metrics of the aggregator.
private struct StatisticsMetrics {
    let counted = Counter(label: "mss_statistics_pushes_counted")
    let folded = Counter(label: "mss_statistics_facts_folded")
    let rejected = Counter(label: "mss_statistics_bodies_rejected")
    let unknown = Counter(label: "mss_statistics_facts_unknown")
    let forgotten = Counter(label: "mss_statistics_rows_forgotten")
    let lag = Gauge(label: "mss_statistics_lag_seconds")
}

/// The readings of stored pushes: one runs at a time, and each is due an interval after the last one began; pure.
private struct OplogReadings {
    /// The interval while no batch of facts starts a reading.
    private static let interval = Duration.seconds(3)

    private var begunAt: ContinuousClock.Instant?
    private var isRunning = false

    /// When the next reading is due; nil: at once.
    var due: ContinuousClock.Instant? { begunAt.map { $0 + Self.interval } }

    /// Begins a reading, which must end with `end`. False: another one runs.
    mutating func begin(at now: ContinuousClock.Instant) -> Bool {
        guard !isRunning else { return false }
        isRunning = true
        begunAt = now
        return true
    }

    mutating func end() { isRunning = false }
}

/// The pauses between attempts to reach the database: doubling, bounded, jittered; pure.
struct RetryPauses {
    private static let first = Duration.milliseconds(100)
    private static let longest = Duration.seconds(5)

    private var pause = first

    /// The pause after one more failure, between half and all of 100 ms, 200 ms, … 5 s.
    ///
    /// - Parameter random: from 0 to 1.
    mutating func next(random: Double) -> Duration {
        defer { pause = min(pause * 2, Self.longest) }
        return pause * (0.5 + 0.5 * random)
    }

    /// Starts again with the first pause, after a success.
    mutating func reset() { pause = Self.first }
}
