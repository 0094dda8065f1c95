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

/// Claims operations whose turn it is, has tenants do them, and has devices told; on a thread with its own database
/// connection. Whatever has happened since the last turn goes to the database together.
actor OperationRunner {
    /// Something that wants a turn.
    enum Event: Sendable {
        /// These instances may have operations whose turn it is.
        case due(Set<InstanceID>)
        /// A call has ended.
        case called(DeviceOperationStore.Held, CircuitBreaker.Pass, CallOutcome)
        /// A group has been told, or could not be.
        case told([DeviceOperationStore.Held], Bool)
        /// Results of operations that were over are to be told once more.
        case repeated
        /// A second has passed.
        case look
    }

    /// Events of one turn.
    private static let turnMax = 1_000
    private static let limit = Duration.seconds(5)
    /// How long this process has to tell what was answered before others do.
    private static let tellLease = Duration.seconds(15)
    /// Groups that nobody has told in time, taken at once.
    private static let untoldMax = 200
    /// Finished operations that are forgotten at once.
    private static let forgottenMax = 5_000

    private let thread = ConnectionThread(name: "operations")
    private let connection: PostgresConnection
    private let events: WorkQueue<Event>
    private let call: TenantCall
    private let teller: Teller
    private let rule: RetryRule
    private let callLease: Duration
    private let instances: @Sendable () -> [InstanceID]
    private let health: HealthState
    private let logger: Logger
    private let name = RandomName.make()
    private var slots: TenantSlots
    private var wanted: Set<InstanceID> = []
    private var cursor = TurnCursor()
    /// What the database has not taken yet.
    private var answers: [(held: DeviceOperationStore.Held, outcome: CallOutcome)] = []
    private var told: [DeviceOperationStore.Told] = []
    private var telling = 0
    private var looksForUntold = false
    private var forgotAt: ContinuousClock.Instant?
    /// The trouble of each instance that was logged last.
    private var troubles: [InstanceID: String] = [:]
    private let callTime = Timer(label: "mss_relay_call")
    private let callCounts = CallCounters()
    private let runningGauge = Gauge(label: "mss_relay_calls_running")

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(
        configuration: PostgresConfiguration, events: WorkQueue<Event>, call: TenantCall, teller: Teller,
        rule: RetryRule, timeout: Duration, concurrency: Int, instances: @escaping @Sendable () -> [InstanceID],
        health: HealthState, logger: Logger
    ) {
        connection = SyncDatabase.connection(configuration, logger: logger)
        self.events = events
        self.call = call
        self.teller = teller
        self.rule = rule
        // A call that ends in time must find its claim.
        callLease = timeout + .seconds(5)
        self.instances = instances
        self.health = health
        self.logger = logger
        slots = TenantSlots(
            concurrency: concurrency, runningMax: TenantConnections.callsMax(openFiles: OpenFiles.limit))
        health.set("postgres", isReady: false)
    }

    /// Works until the events are finished, and what is under way has ended.
    func run() async {
        await withDiscardingTaskGroup { group in
            while true {
                let turn = await events.take(upTo: Self.turnMax)
                if turn.isEmpty { break }
                for event in turn { note(event) }
                perform(in: &group)
            }
        }
        perform()
        call.caller.close()
        connection.close()
        thread.stop()
    }

    /// What is under way: the events end only when it is 0.
    var isIdle: Bool { slots.running == 0 && telling == 0 && answers.isEmpty }

    private func note(_ event: Event) {
        switch event {
        case .due(let ids): wanted.formUnion(ids)
        case .called(let held, let pass, let outcome):
            var isAnswer = true
            if case .again(_, _, _, let answered) = outcome { isAnswer = answered }
            slots.ended(held.instanceID, pass, withAnswer: isAnswer, at: .now)
            answers.append((held, outcome))
            wanted.insert(held.instanceID)
        case .told(let group, let isTold):
            telling -= 1
            guard isTold else { return }
            told += group.map {
                DeviceOperationStore.Told(instanceID: $0.instanceID, number: $0.number, tellGroup: $0.tellGroup)
            }
            wanted.formUnion(group.map(\.instanceID))
        case .repeated: looksForUntold = true
        case .look:
            wanted.formUnion(instances())
            cursor.forget()
            looksForUntold = true
        }
    }

    /// Everything that waits, in the order that frees the most: answers, ends, then new work.
    private func perform(in group: inout DiscardingTaskGroup) {
        do throws(PostgresError) {
            for batch in try storeAnswers() { tell(batch, in: &group) }
            try storeEnds()
            if looksForUntold {
                looksForUntold = false
                let untold = try connection.run(
                    DeviceOperationStore.claimUntold(claimer: name, lease: Self.tellLease, most: Self.untoldMax),
                    within: Self.limit)
                for batch in Self.groups(of: untold) { tell(batch, in: &group) }
            }
            try claim(in: &group)
            // Last, so that nothing waits for it; one that fails is tried again with the next pause.
            try forget()
            health.set("postgres", isReady: true)
        } catch {
            health.set("postgres", isReady: false)
            logger.warning("the database is not ready", metadata: ["error": "\(error.message)"])
        }
        runningGauge.record(slots.running)
    }

    /// At the end: what is known is stored as far as it can be.
    private func perform() {
        do throws(PostgresError) {
            _ = try storeAnswers()
            try storeEnds()
        } catch {
            logger.warning("what was done is not recorded", metadata: ["error": "\(error.message)"])
        }
    }

    // MARK: Answers

    /// Stores what calls came to.
    ///
    /// - Returns: the groups that are to be told.
    private func storeAnswers() throws(PostgresError) -> [[DeviceOperationStore.Held]] {
        if answers.isEmpty { return [] }
        var ended: [DeviceOperationStore.Held] = []
        var notes: [DeviceOperationStore.Answer] = []
        for (held, outcome) in answers {
            let answer = judge(held, outcome)
            guard answer.outcome != nil else {
                notes.append(answer)
                continue
            }
            var held = held
            (held.outcome, held.code, held.message) = (answer.outcome, answer.code, answer.message)
            (held.requestID, held.imported) = (answer.requestID, answer.imported)
            ended.append(held)
        }
        TellGroups.name(&ended, makeName: RandomName.make)
        notes += ended.map {
            DeviceOperationStore.Answer(
                instanceID: $0.instanceID, number: $0.number, attempt: $0.attempts, outcome: $0.outcome, code: $0.code,
                message: $0.message,
                requestID: $0.requestID, imported: $0.imported, pause: .zero, tellGroup: $0.tellGroup)
        }
        let answered = try connection.run(
            DeviceOperationStore.answer(notes, at: .now, claimer: name, lease: Self.tellLease), within: Self.limit)
        answers = []
        let untold = ended.compactMap { held -> DeviceOperationStore.Held? in
            guard let time = answered[held.number] else { return nil }
            var held = held
            held.answeredAt = time
            return held
        }
        return Self.groups(of: untold)
    }

    /// What a call's outcome is to the store.
    private func judge(_ held: DeviceOperationStore.Held, _ outcome: CallOutcome) -> DeviceOperationStore.Answer {
        var answer = DeviceOperationStore.Answer(
            instanceID: held.instanceID, number: held.number, attempt: held.attempts, outcome: nil, code: 200,
            message: "", requestID: held.callID,
            imported: nil, pause: .zero, tellGroup: "")
        switch outcome {
        case .accepted(let message, let imported):
            (answer.outcome, answer.message, answer.imported) = (.accepted, message, imported)
            note("", of: held)
        case .refused(let code, let message):
            (answer.outcome, answer.code, answer.message) = (.refused, code, message)
            note("", of: held)
        case .again(let code, let reason, let named, _):
            note(reason, of: held)
            (answer.code, answer.message) = (code, String(reason.prefix(Limits.operationMessageUnits)))
            if let pause = rule.pause(
                after: held.attempts, waited: held.waited, named: named, random: Double.random(in: 0..<1))
            {
                answer.pause = pause
            } else {
                answer.outcome = .dead
                answer.code = Int(OperationRefusalCode.givenUp)
                answer.message = "given up after \(held.attempts) attempts: \(answer.message)"
            }
        }
        callCounts.count(answer.outcome)
        return answer
    }

    /// - Parameter trouble: empty: there is none any more.
    private func note(_ trouble: String, of held: DeviceOperationStore.Held) {
        let instanceID = held.instanceID
        guard !held.isOfDiagnosis else {
            if !trouble.isEmpty { logger.warning("a device's log was not kept", metadata: ["reason": "\(trouble)"]) }
            return
        }
        guard troubles[instanceID, default: ""] != trouble else { return }
        troubles[instanceID] = trouble.isEmpty ? nil : trouble
        trouble.isEmpty
            ? logger.info("a tenant takes operations again", metadata: ["instanceId": "\(instanceID)"])
            : logger.warning(
                "a tenant does not take operations: see Operations in deploy/README.md",
                metadata: ["instanceId": "\(instanceID)", "reason": "\(trouble)"])
    }

    private static func groups(of all: [DeviceOperationStore.Held]) -> [[DeviceOperationStore.Held]] {
        Dictionary(grouping: all, by: \.tellGroup).values.map { $0.sorted { $0.number < $1.number } }
    }

    // MARK: Telling

    private func tell(_ batch: [DeviceOperationStore.Held], in group: inout DiscardingTaskGroup) {
        telling += 1
        group.addTask { [teller, events] in
            let isTold = await teller.tell(batch)
            events.add(.told(batch, isTold))
        }
    }

    private func storeEnds() throws(PostgresError) {
        if told.isEmpty { return }
        cursor.movedUp(try connection.run(DeviceOperationStore.finish(told), within: Self.limit))
        told = []
    }

    // MARK: New work

    private func claim(in group: inout DiscardingTaskGroup) throws(PostgresError) {
        // Behind answers that wait nothing is begun.
        if Task.isShuttingDownGracefully || wanted.isEmpty { return }
        let now = ContinuousClock.now
        let free = wanted.map {
            DeviceOperationStore.Wanted(instanceID: $0, most: slots.free(for: $0, at: now), from: cursor.turn(of: $0))
        }.filter { $0.most > 0 }
        // Those without a free place are asked for again when a call ends, or in a second.
        wanted = []
        if free.isEmpty { return }
        let claimed = try connection.run(
            DeviceOperationStore.claim(free, claimer: name, lease: callLease), within: Self.limit)
        cursor.claimed(claimed)
        for held in claimed { begin(held, in: &group) }
    }

    private func begin(_ held: DeviceOperationStore.Held, in group: inout DiscardingTaskGroup) {
        if held.isOfDiagnosis {
            answers.append((held, keep(held)))
            return events.add(.due([held.instanceID]))
        }
        guard let pass = slots.begin(held.instanceID, at: .now) else {
            answers.append(
                (held, .again(code: 0, reason: "the tenant does not answer", named: nil, isAnswer: true)))
            return
        }
        group.addTask { [call, events, callTime] in
            let begun = ContinuousClock.now
            let outcome = await call.make(held)
            callTime.record(duration: .now - begun)
            events.add(.called(held, pass, outcome))
        }
    }

    /// What devices send of their logs stays here.
    private func keep(_ held: DeviceOperationStore.Held) -> CallOutcome {
        var operation = held.operation
        operation.children = DeviceOperation.children(stored: held.children)
        let (instanceID, deviceID) = (held.instanceID, held.deviceID)
        do {
            switch try DiagnosisUpload(operation) {
            case .part(let part):
                let (code, message) = try connection.run(
                    DiagnosisStore.keep(part, of: instanceID, from: deviceID, held.userID), within: Self.limit)
                return code == 200
                    ? .accepted(message: "", imported: nil) : .refused(code: code, message: message)
            case .refusal(let taskID, let run, let reason):
                try connection.run(
                    DiagnosisStore.refuse(
                        taskID, run: run, reason: reason, of: instanceID, from: deviceID, held.userID),
                    within: Self.limit)
                return .accepted(message: "", imported: nil)
            }
        } catch let fault as DiagnosisUpload.Fault {
            return .refused(code: 400, message: fault.reason)
        } catch {
            return .again(code: 0, reason: "a part of a log was not kept: \(error)", named: nil, isAnswer: true)
        }
    }

    private func forget() throws(PostgresError) {
        let isDue = forgotAt.map { $0.duration(to: .now) >= .seconds(600) } ?? true
        guard isDue else { return }
        forgotAt = .now
        let forgotten = try connection.run(
            DeviceOperationStore.forget(most: Self.forgottenMax), within: .seconds(10))
        _ = try connection.run(DiagnosisStore.forget(most: Limits.diagnosisTasks), within: .seconds(10))
        // As long as there is much, it goes on with the next look.
        if forgotten == Self.forgottenMax { forgotAt = nil }
    }
}

extension DeviceOperationStore.Held {
    /// It has to do with a log that an operator asked for.
    var isOfDiagnosis: Bool { BizType(operation.component) == ReservedSyncID.diagnosis }
}
