import ConnectionThread
import Logging
import Metrics
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import SyncModel
import SyncStore
import TenantCalls

/// Claims the operations that are next, calls tenants to execute them, and has their results pushed, on a thread and a
/// database connection of its own. Each turn sends everything since the last turn to the database together.
actor OperationRunner {
    /// An event for the next turn.
    enum Event: Sendable {
        /// These instances may have operations to claim.
        case due(Set<InstanceID>)
        /// A call has ended.
        case called(DeviceOperationStore.StoredOperation, CircuitBreaker.Pass, CallOutcome)
        /// The push of a group has ended; true: successfully.
        case pushed([DeviceOperationStore.StoredOperation], Bool)
        /// A device repeated an operation that was finished, so its result must be pushed again.
        case repeated
        /// A second has passed.
        case tick
    }

    /// The largest number of events in one turn.
    private static let turnMax = 1_000

    private let thread = ConnectionThread(name: "operations")
    private let events: WorkQueue<Event>
    private let call: TenantCall
    private let pusher: ResultPusher
    private let instances: @Sendable () -> [InstanceID]
    private let health: HealthState
    private let logger: Logger
    private let metrics = CallMetrics()
    private var database: OperationDatabase
    private var judge: OutcomeJudge
    private var work: OperationWork

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        configuration: PostgresConfiguration, events: WorkQueue<Event>, call: TenantCall, pusher: ResultPusher,
        rule: RetryRule, timeout: Duration, concurrency: Int, instances: @escaping @Sendable () -> [InstanceID],
        health: HealthState, logger: Logger
    ) {
        self.events = events
        self.call = call
        self.pusher = pusher
        self.instances = instances
        self.health = health
        self.logger = logger
        database = OperationDatabase(
            connection: SyncDatabase.connection(configuration, logger: logger), callTimeout: timeout)
        judge = OutcomeJudge(rule: rule, logger: logger)
        work = OperationWork(
            slots: TenantSlots(
                concurrency: concurrency, runningMax: TenantConnections.callsMax(openFiles: OpenFiles.limit)))
        health.set("postgres", isReady: false)
    }

    /// Runs until the events are finished and every call and push has ended.
    func run() async {
        await withDiscardingTaskGroup { group in
            while true {
                let turn = await events.dequeue(upTo: Self.turnMax)
                if turn.isEmpty { break }
                for event in turn { apply(event) }
                perform(in: &group)
            }
        }
        perform()
        call.caller.close()
        database.close()
        thread.stop()
    }

    /// Whether no call and no push is in flight and no answer waits. Only then may the events be finished.
    var isIdle: Bool { work.isIdle }

    private func apply(_ event: Event) {
        switch event {
        case .due(let ids): work.due(ids)
        case .called(let stored, let pass, let outcome): work.callEnded(stored, pass, outcome, at: .now)
        case .pushed(let group, let isPushed): work.pushEnded(group, isPushed: isPushed)
        case .repeated: work.resultRepeated()
        case .tick: work.ticked(instances())
        }
    }

    /// Does everything that waits: first answers, then finished operations, then new calls, because the first two free
    /// the most.
    private func perform(in group: inout DiscardingTaskGroup) {
        do throws(PostgresError) {
            for batch in try storeAnswers() { push(batch, in: &group) }
            try finishAnnounced()
            if work.dequeueUnannounced() {
                let unannounced = try database.claimUnannounced()
                for batch in ResultGroups.groups(of: unannounced) { push(batch, in: &group) }
            }
            try claim(in: &group)
            // Last, so that nothing waits for it.
            try database.forget()
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
        }
        metrics.setRunning(work.running)
    }

    /// Stores the known answers before the process ends, if the database permits.
    private func perform() {
        do throws(PostgresError) {
            _ = try storeAnswers()
            try finishAnnounced()
        } catch {
            logger.warning(
                "call outcomes were not stored before the process ended; another relay repeats the calls",
                metadata: ["error": "\(error.message)"])
        }
    }

    // MARK: Answers

    /// Stores the outcomes of calls.
    ///
    /// - Returns: the groups to push.
    private func storeAnswers() throws(PostgresError) -> [[DeviceOperationStore.StoredOperation]] {
        if work.outcomes.isEmpty { return [] }
        var ended: [DeviceOperationStore.StoredOperation] = []
        var allAnswers: [DeviceOperationStore.Answer] = []
        for (stored, outcome) in work.outcomes {
            let answer = judge.answer(to: stored, outcome, random: .random(in: 0..<1))
            metrics.count(answer.outcome)
            guard answer.outcome != nil else {
                allAnswers.append(answer)
                continue
            }
            var stored = stored
            (stored.outcome, stored.code, stored.message) = (answer.outcome, answer.code, answer.message)
            (stored.requestID, stored.imported) = (answer.requestID, answer.imported)
            ended.append(stored)
        }
        ResultGroups.name(&ended, makeName: RandomName.make)
        allAnswers += ended.map {
            DeviceOperationStore.Answer(
                instanceID: $0.instanceID, number: $0.number, attempt: $0.attempts, outcome: $0.outcome, code: $0.code,
                message: $0.message,
                requestID: $0.requestID, imported: $0.imported, pause: .zero, resultGroup: $0.resultGroup)
        }
        let answered = try database.store(allAnswers)
        work.outcomesStored()
        let unannounced = ended.compactMap { stored -> DeviceOperationStore.StoredOperation? in
            guard let time = answered[stored.number] else { return nil }
            var stored = stored
            stored.answeredAt = time
            return stored
        }
        return ResultGroups.groups(of: unannounced)
    }

    // MARK: Pushing results

    private func push(_ batch: [DeviceOperationStore.StoredOperation], in group: inout DiscardingTaskGroup) {
        work.pushBegan()
        group.addTask { [pusher, events] in
            let isPushed = await pusher.push(batch)
            events.add(.pushed(batch, isPushed))
        }
    }

    private func finishAnnounced() throws(PostgresError) {
        if work.announced.isEmpty { return }
        work.finished(advanced: try database.finish(work.announced))
    }

    // MARK: New work

    private func claim(in group: inout DiscardingTaskGroup) throws(PostgresError) {
        // During a shutdown no new call begins.
        if Task.isShuttingDownGracefully { return }
        let requests = work.dequeueClaims(at: .now)
        if requests.isEmpty { return }
        let claimed = try database.claim(requests)
        work.claimed(claimed)
        for stored in claimed { begin(stored, in: &group) }
    }

    private func begin(_ stored: DeviceOperationStore.StoredOperation, in group: inout DiscardingTaskGroup) {
        if stored.isOfDiagnosis {
            work.add(database.storeDiagnosis(stored), of: stored)
            return events.add(.due([stored.instanceID]))
        }
        guard let pass = work.beginCall(stored.instanceID, at: .now) else {
            work.add(.again(code: 0, reason: "the tenant does not answer", named: nil, isAnswer: true), of: stored)
            return
        }
        group.addTask { [call, events, metrics] in
            let begun = ContinuousClock.now
            let outcome = await call.make(stored)
            metrics.record(.now - begun)
            events.add(.called(stored, pass, outcome))
        }
    }
}

/// The metrics of the calls of tenants.
private struct CallMetrics: Sendable {
    private let time = Timer(label: "mss_relay_call")
    private let runningGauge = Gauge(label: "mss_relay_calls_running")
    private let accepted = Counter(label: "mss_relay_calls", dimensions: [("outcome", "accepted")])
    private let refused = Counter(label: "mss_relay_calls", dimensions: [("outcome", "refused")])
    private let again = Counter(label: "mss_relay_calls", dimensions: [("outcome", "again")])
    private let dead = Counter(label: "mss_relay_calls", dimensions: [("outcome", "dead")])
    /// Operations that became dead, for the console: process reports contain only figures without labels.
    private let deadLetters = Counter(label: "mss_relay_dead_letters")

    /// Records the time that a call took.
    func record(_ duration: Duration) { time.record(duration: duration) }

    /// Sets the number of calls in flight.
    func setRunning(_ count: Int) { runningGauge.record(count) }

    /// Counts one call.
    ///
    /// - Parameter outcome: nil: the call is retried.
    func count(_ outcome: DeviceOperationState?) {
        switch outcome {
        case .accepted?: accepted.increment()
        case .refused?: refused.increment()
        case .dead?:
            dead.increment()
            deadLetters.increment()
        case .waiting?, .answered?, nil: again.increment()
        }
    }
}
