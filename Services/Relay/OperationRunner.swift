import BusMessages
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
    private static let limit = Duration.seconds(5)
    /// The time for which this process alone may push the results of answered operations.
    private static let pushLease = Duration.seconds(15)
    /// One turn claims the groups of at most so many operations whose results were not pushed in time.
    private static let unannouncedMax = 200
    /// The largest number of finished operations that one statement deletes.
    private static let forgottenMax = 5_000

    private let thread = ConnectionThread(name: "operations")
    private let connection: PostgresConnection
    private let events: WorkQueue<Event>
    private let call: TenantCall
    private let pusher: ResultPusher
    private let rule: RetryRule
    private let callLease: Duration
    private let instances: @Sendable () -> [InstanceID]
    private let health: HealthState
    private let logger: Logger
    private let name = RandomName.make()
    private var slots: TenantSlots
    private var dueInstances: Set<InstanceID> = []
    private var cursor = ClaimCursor()
    /// Answers that are not stored yet.
    private var answers: [(stored: DeviceOperationStore.StoredOperation, outcome: CallOutcome)] = []
    private var announced: [DeviceOperationStore.AnnouncedOperation] = []
    private var pushesInFlight = 0
    private var claimsUnannounced = false
    private var forgotAt: ContinuousClock.Instant?
    /// The last failure of each instance that was logged.
    private var failures: [InstanceID: String] = [:]
    private let callTime = Timer(label: "mss_relay_call")
    private let callCounts = CallCounters()
    private let runningGauge = Gauge(label: "mss_relay_calls_running")

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        configuration: PostgresConfiguration, events: WorkQueue<Event>, call: TenantCall, pusher: ResultPusher,
        rule: RetryRule, timeout: Duration, concurrency: Int, instances: @escaping @Sendable () -> [InstanceID],
        health: HealthState, logger: Logger
    ) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.events = events
        self.call = call
        self.pusher = pusher
        self.rule = rule
        // Longer than a call, so that a claim never expires during its call.
        callLease = timeout + .seconds(5)
        self.instances = instances
        self.health = health
        self.logger = logger
        slots = TenantSlots(
            concurrency: concurrency, runningMax: TenantConnections.callsMax(openFiles: OpenFiles.limit))
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
        connection.close()
        thread.stop()
    }

    /// Whether no call and no push is in flight and no answer waits. Only then may the events be finished.
    var isIdle: Bool { slots.running == 0 && pushesInFlight == 0 && answers.isEmpty }

    private func apply(_ event: Event) {
        switch event {
        case .due(let ids): dueInstances.formUnion(ids)
        case .called(let stored, let pass, let outcome):
            var isAnswer = true
            if case .again(_, _, _, let answered) = outcome { isAnswer = answered }
            slots.ended(stored.instanceID, pass, withAnswer: isAnswer, at: .now)
            answers.append((stored, outcome))
            dueInstances.insert(stored.instanceID)
        case .pushed(let group, let isPushed):
            pushesInFlight -= 1
            guard isPushed else { return }
            announced += group.map {
                DeviceOperationStore.AnnouncedOperation(
                    instanceID: $0.instanceID, number: $0.number, resultGroup: $0.resultGroup)
            }
            dueInstances.formUnion(group.map(\.instanceID))
        case .repeated: claimsUnannounced = true
        case .tick:
            dueInstances.formUnion(instances())
            cursor.forget()
            claimsUnannounced = true
        }
    }

    /// Does everything that waits: first answers, then finished operations, then new calls, because the first two free
    /// the most.
    private func perform(in group: inout DiscardingTaskGroup) {
        do throws(PostgresError) {
            for batch in try storeAnswers() { push(batch, in: &group) }
            try finishAnnounced()
            if claimsUnannounced {
                claimsUnannounced = false
                let unannounced = try connection.run(
                    DeviceOperationStore.claimUnannounced(
                        claimer: name, lease: Self.pushLease, most: Self.unannouncedMax),
                    within: Self.limit)
                for batch in Self.groups(of: unannounced) { push(batch, in: &group) }
            }
            try claim(in: &group)
            // Last, so that nothing waits for it. A failed deletion is repeated after the usual pause.
            try forget()
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
        }
        runningGauge.record(slots.running)
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
        if answers.isEmpty { return [] }
        var ended: [DeviceOperationStore.StoredOperation] = []
        var allAnswers: [DeviceOperationStore.Answer] = []
        for (stored, outcome) in answers {
            let answer = judge(stored, outcome)
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
        let answered = try connection.run(
            DeviceOperationStore.answer(allAnswers, at: .now, claimer: name, lease: Self.pushLease), within: Self.limit)
        answers = []
        let unannounced = ended.compactMap { stored -> DeviceOperationStore.StoredOperation? in
            guard let time = answered[stored.number] else { return nil }
            var stored = stored
            stored.answeredAt = time
            return stored
        }
        return Self.groups(of: unannounced)
    }

    /// The answer to store for a call's outcome.
    private func judge(_ stored: DeviceOperationStore.StoredOperation, _ outcome: CallOutcome)
        -> DeviceOperationStore.Answer
    {
        var answer = DeviceOperationStore.Answer(
            instanceID: stored.instanceID, number: stored.number, attempt: stored.attempts, outcome: nil, code: 200,
            message: "", requestID: stored.callID,
            imported: nil, pause: .zero, resultGroup: "")
        switch outcome {
        case .accepted(let message, let imported):
            (answer.outcome, answer.message, answer.imported) = (.accepted, message, imported)
            report(failure: "", of: stored)
        case .refused(let code, let message):
            (answer.outcome, answer.code, answer.message) = (.refused, code, message)
            report(failure: "", of: stored)
        case .again(let code, let reason, let named, _):
            report(failure: reason, of: stored)
            (answer.code, answer.message) = (code, String(reason.prefix(Limits.operationMessageUnits)))
            if let pause = rule.pause(
                after: stored.attempts, waited: stored.waited, named: named, random: Double.random(in: 0..<1))
            {
                answer.pause = pause
            } else {
                answer.outcome = .dead
                answer.code = Int(OperationRefusalCode.givenUp)
                answer.message = "given up after \(stored.attempts) attempts: \(answer.message)"
            }
        }
        callCounts.count(answer.outcome)
        return answer
    }

    /// Logs a failure of an operation's instance when it differs from the last one.
    ///
    /// - Parameter failure: empty: the call succeeded.
    private func report(failure: String, of stored: DeviceOperationStore.StoredOperation) {
        let instanceID = stored.instanceID
        guard !stored.isOfDiagnosis else {
            if !failure.isEmpty {
                logger.warning("a device log part was not stored", metadata: ["reason": "\(failure)"])
            }
            return
        }
        guard failures[instanceID, default: ""] != failure else { return }
        failures[instanceID] = failure.isEmpty ? nil : failure
        failure.isEmpty
            ? logger.info("a tenant executes operations again", metadata: ["instanceId": "\(instanceID)"])
            : logger.warning(
                "a tenant does not execute operations: see deploy/manual/DeviceOperations.md",
                metadata: ["instanceId": "\(instanceID)", "reason": "\(failure)"])
    }

    private static func groups(of all: [DeviceOperationStore.StoredOperation]) -> [[DeviceOperationStore
        .StoredOperation]]
    {
        Dictionary(grouping: all, by: \.resultGroup).values.map { $0.sorted { $0.number < $1.number } }
    }

    // MARK: Pushing results

    private func push(_ batch: [DeviceOperationStore.StoredOperation], in group: inout DiscardingTaskGroup) {
        pushesInFlight += 1
        group.addTask { [pusher, events] in
            let isPushed = await pusher.push(batch)
            events.add(.pushed(batch, isPushed))
        }
    }

    private func finishAnnounced() throws(PostgresError) {
        if announced.isEmpty { return }
        cursor.advanced(try connection.run(DeviceOperationStore.finish(announced), within: Self.limit))
        announced = []
    }

    // MARK: New work

    private func claim(in group: inout DiscardingTaskGroup) throws(PostgresError) {
        // During a shutdown no new call begins.
        if Task.isShuttingDownGracefully || dueInstances.isEmpty { return }
        let now = ContinuousClock.now
        let free = dueInstances.map {
            DeviceOperationStore.ClaimRequest(
                instanceID: $0, most: slots.free(for: $0, at: now), from: cursor.turn(of: $0))
        }.filter { $0.most > 0 }
        // An instance without a free slot is added again when a call ends, or within a second.
        dueInstances = []
        if free.isEmpty { return }
        let claimed = try connection.run(
            DeviceOperationStore.claim(free, claimer: name, lease: callLease), within: Self.limit)
        cursor.claimed(claimed)
        for stored in claimed { begin(stored, in: &group) }
    }

    private func begin(_ stored: DeviceOperationStore.StoredOperation, in group: inout DiscardingTaskGroup) {
        if stored.isOfDiagnosis {
            answers.append((stored, storeDiagnosis(stored)))
            return events.add(.due([stored.instanceID]))
        }
        guard let pass = slots.begin(stored.instanceID, at: .now) else {
            answers.append(
                (stored, .again(code: 0, reason: "the tenant does not answer", named: nil, isAnswer: true)))
            return
        }
        group.addTask { [call, events, callTime] in
            let begun = ContinuousClock.now
            let outcome = await call.make(stored)
            callTime.record(duration: .now - begun)
            events.add(.called(stored, pass, outcome))
        }
    }

    /// Stores a part of a device log, or a refusal. No tenant is called.
    private func storeDiagnosis(_ stored: DeviceOperationStore.StoredOperation) -> CallOutcome {
        var operation = stored.operation
        operation.children = DeviceOperation.children(stored: stored.children)
        let (instanceID, deviceID) = (stored.instanceID, stored.deviceID)
        do {
            switch try DiagnosisUpload(operation) {
            case .part(let part):
                let (code, message) = try connection.run(
                    DiagnosisStore.store(part, of: instanceID, from: deviceID, stored.userID), within: Self.limit)
                return code == 200
                    ? .accepted(message: "", imported: nil) : .refused(code: code, message: message)
            case .refusal(let taskID, let run, let reason):
                try connection.run(
                    DiagnosisStore.refuse(
                        taskID, run: run, reason: reason, of: instanceID, from: deviceID, stored.userID),
                    within: Self.limit)
                return .accepted(message: "", imported: nil)
            }
        } catch let fault as DiagnosisUpload.Fault {
            return .refused(code: 400, message: fault.reason)
        } catch {
            return .again(code: 0, reason: "a part of a log was not stored: \(error)", named: nil, isAnswer: true)
        }
    }

    private func forget() throws(PostgresError) {
        let isDue = forgotAt.map { $0.duration(to: .now) >= .seconds(600) } ?? true
        guard isDue else { return }
        forgotAt = .now
        let forgotten = try connection.run(
            DeviceOperationStore.forget(most: Self.forgottenMax), within: .seconds(10))
        _ = try connection.run(DiagnosisStore.forget(most: Limits.diagnosisTasks), within: .seconds(10))
        // If more remain, the next tick continues.
        if forgotten == Self.forgottenMax { forgotAt = nil }
    }
}

extension DeviceOperationStore.StoredOperation {
    /// Whether the operation belongs to a log that an operator requested.
    var isOfDiagnosis: Bool { BizType(operation.component) == ReservedSyncID.diagnosis }
}

/// Counts the calls of tenants by outcome.
private struct CallCounters: Sendable {
    private let accepted = Counter(label: "mss_relay_calls", dimensions: [("outcome", "accepted")])
    private let refused = Counter(label: "mss_relay_calls", dimensions: [("outcome", "refused")])
    private let again = Counter(label: "mss_relay_calls", dimensions: [("outcome", "again")])
    private let dead = Counter(label: "mss_relay_calls", dimensions: [("outcome", "dead")])
    /// Operations that became dead, for the console: process reports contain only figures without labels.
    private let deadLetters = Counter(label: "mss_relay_dead_letters")

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
