import AMQP
import BusMessages
import Foundation
import Metrics
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore

/// Stores pushes: one transaction for a group, then the notices and the answers.
struct AppendWork: LaneWork {
    typealias Command = Mss_Bus_V1_AppendCommand

    static let queue = CommandQueue.append
    static let groupBodies = 32
    /// Rows of one transaction: beyond this a batch buys nothing and costs latency.
    static let groupRows = 100

    /// Records that the outcome of these is known, then calls back, whether or not the record could be made.
    typealias RecordingOutcomes =
        @Sendable (_ pushes: [OplogStore.LivePush], _ completion: @escaping @Sendable () -> Void) -> Void

    let bus: MessageBus
    private let clock: ProcessClock
    private let recordOutcomes: RecordingOutcomes
    private let tracer: PushTracer?
    private let stored = Counter(label: "mss_writer_oplogs_stored")
    private let duplicates = Counter(label: "mss_writer_duplicates")
    private let batchRows = Recorder(label: "mss_writer_append_batch_rows")
    private let time = Timer(label: "mss_writer_append")

    /// - Parameters:
    ///   - recordOutcomes: for pushes that are stored nowhere.
    ///   - tracer: nil: no push is traced.
    init(
        bus: MessageBus, recordOutcomes: @escaping RecordingOutcomes, clock: ProcessClock = .system,
        tracer: PushTracer? = nil
    ) {
        self.bus = bus
        self.clock = clock
        self.recordOutcomes = recordOutcomes
        self.tracer = tracer
    }

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AppendCommands.elements(of: body) }

    /// One push on its way through the group.
    struct Row {
        let command: Command
        let replyTo: String
        let append: OplogStore.Append
    }

    func perform(_ tasks: [LaneTask<Command>], on connection: PostgresConnection) { perform(tasks, in: connection) }

    func perform(_ tasks: [LaneTask<Command>], in store: some DeliveryStore) {
        var rows: [Row] = []
        for task in tasks {
            for command in task.commands {
                if let row = Self.row(command, replyTo: task.replyTo) {
                    rows.append(row)
                } else {
                    refuse(command, to: task.replyTo, "this build does not know the kind of channel")
                }
            }
        }
        append(
            rows, to: store, repeatingUntil: tasks.map(deadline).min() ?? clock.now(),
            until: tasks.map { $0.delivery.receivedAt + Self.queue.timeout }.max() ?? clock.now())
        bus.settle(tasks.map(\.delivery), as: .accepted)
    }

    /// When the first caller of a body gives up. A redelivered body is looked at, however late it is.
    private func deadline(of task: LaneTask<Command>) -> ContinuousClock.Instant {
        let (now, latest) = (clock.now(), task.delivery.receivedAt + Self.queue.timeout)
        guard !task.delivery.isRedelivered, let time = bus.databaseTime.time(at: now),
            let first = task.commands.map(\.deadlineMs).filter({ $0 > 0 }).min()
        else { return latest }
        return min(latest, now + .milliseconds(first - time.milliseconds))
    }

    private static func row(_ command: Command, replyTo: String) -> Row? {
        guard let target = TargetAddress(bus: command.target) else { return nil }
        let address = ChannelAddress(target: target, bizType: BizType(command.bizType))
        let append = OplogStore.Append(address: address, oplog: SyncModel.Oplog(bus: command.oplog))
        return Row(command: command, replyTo: replyTo, append: append)
    }

    /// Stores rows and answers them.
    ///
    /// A row that the database cannot take must not fail its neighbours, and a channel that another transaction holds
    /// locked must not hold them up: after the first lock time-out its rows fail, and the others are stored at once.
    ///
    /// - Parameters:
    ///   - repeatingUntil: after it no part is stored once more.
    ///   - last: after it nothing is stored any more: every caller has given up.
    private func append(
        _ rows: [Row], to store: some DeliveryStore, repeatingUntil deadline: ContinuousClock.Instant,
        until last: ContinuousClock.Instant
    ) {
        #if KNOWN_BAD
            if KnownBad.answersBeforeCommit.isOn {
                for row in rows {
                    bus.reply(
                        .with {
                            $0.correlation = row.command.correlation
                            $0.append.outcome = .stored
                            $0.append.oplogID = 1
                        }, to: row.replyTo)
                }
            }
        #endif
        var plan = BatchPlan(rows, partMax: Self.groupRows) { $0.append.address }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                guard clock.now() < last else {
                    plan.failed(
                        with: PostgresError(code: .unavailable, message: "the deadline has passed", mayRetry: true),
                        mayRepeat: false)
                    continue
                }
                do throws(PostgresError) {
                    try appendTogether(part, to: store)
                    plan.stored()
                } catch {
                    plan.failed(
                        with: error, mayRepeat: clock.now() < deadline, locked: lockedChannels(of: part, error, store))
                }
            case .refuse(let row, let error):
                let sqlState = error.sqlState ?? ""
                refuse(row.command, to: row.replyTo, "the database cannot take this value (SQLSTATE \(sqlState))")
            case .fail(let part, let error):
                for row in part { fail(row.command.correlation, to: row.replyTo, with: error) }
            }
        }
    }

    /// After a lock time-out, the channels of these rows that are still held; not knowing costs nothing but time.
    private func lockedChannels(
        of rows: [Row], _ error: PostgresError, _ store: some DeliveryStore
    ) -> Set<ChannelAddress> {
        guard error.sqlState == "55P03" else { return [] }
        return (try? store.lockedChannels(of: Set(rows.map(\.append.address)))) ?? []
    }

    private func appendTogether(_ rows: [Row], to store: some DeliveryStore) throws(PostgresError) {
        // Presence is read after the append has committed. A session that it does not see registers later and then
        // reads a backlog that has the append (design §1).
        let start = (clock: ContinuousClock.now, trace: tracer == nil ? 0 : PushTracer.now)
        let askedAt = clock.now()
        let (answers, presence) = try store.append(rows.map(\.append))
        time.record(duration: .now - start.clock)
        if let answer = answers.lazy.compactMap({ $0 }).first {
            bus.databaseTime.observe(answer.databaseTime, askedAt: askedAt)
        }
        batchRows.record(Int64(rows.count))
        trace(rows, answers, since: start.trace)
        var sessions: [[DeviceSessionStore.Presence]] = Array(repeating: [], count: rows.count)
        do throws(PostgresError) {
            for session in try presence.get() { sessions[session.ordinal].append(session) }
        } catch {
            // Stored, but nobody knows for whom: the honest answer is that the outcome is unknown; the sweep delivers.
            bus.together {
                for (row, answer) in zip(rows, answers) {
                    answer == nil
                        ? answerUnconfigured(row)
                        : fail(row.command.correlation, to: row.replyTo, with: error.afterCommit)
                }
            }
            return
        }
        let stored = zip(zip(rows, answers), sessions).compactMap { pair, sessions in
            pair.1.map { NoticePlan.Stored(row: pair.0, appended: $0, sessions: sessions) }
        }
        let everyGateway = everyGateway(for: stored, in: store)
        bus.together {
            let steps = NoticePlan.steps(of: stored, everyGateway: everyGateway)
            for step in steps { tell(step) }
            for push in stored where !push.isLiveOnly { answer(push, push.isOnline ? .taken : .notTaken) }
            let handedOut = Set(steps.flatMap(\.liveOnly).map(\.key))
            answer(stored.filter { $0.isLiveOnly && !handedOut.contains($0.key) }) { _ in .notTaken }
            for (row, answer) in zip(rows, answers) where answer == nil { answerUnconfigured(row) }
        }
    }

    private func trace(_ rows: [Row], _ answers: [OplogStore.Appended?], since start: UInt64) {
        guard let tracer else { return }
        for (row, answer) in zip(rows, answers) {
            let (address, oplog) = (row.append.address, row.append.oplog)
            guard let answer, !answer.isDuplicate,
                let trace = tracer.trace(
                    of: address.target.instanceID, address.bizType, to: address.target.target, oplog.thirdMessageID)
            else { continue }
            tracer.note(
                .store, of: trace, since: start,
                ["mss.oplog_id": "\(answer.oplogID.value)", "mss.batch": "\(rows.count)"])
        }
    }

    /// Whom an immediate global push is told to. Not knowing costs nothing but time: it is committed, and devices read
    /// it when they connect.
    private func everyGateway(for pushes: [NoticePlan.Stored], in store: some DeliveryStore) -> [String] {
        guard pushes.contains(where: \.appended.isImmediate) else { return [] }
        return (try? store.leaseBook())?.gatewayIDs ?? []
    }

    /// Tells the gateways; what only they can say is answered once they have.
    private func tell(_ step: NoticePlan.ChannelStep) {
        guard !step.liveOnly.isEmpty else {
            for gatewayID in step.gatewayIDs { bus.notify(gateway: gatewayID, step.notice) }
            return
        }
        let delivery = LiveDelivery(gateways: step.gatewayIDs.count) { [self] outcome in
            answer(step.liveOnly, outcome)
        }
        for gatewayID in step.gatewayIDs {
            bus.notify(gateway: gatewayID, timeout: LiveDelivery.limit) { correlation in
                var notice = step.notice
                notice.oplogs.correlation = correlation
                return notice
            } completion: { result in
                if case .success(let reply) = result, case .taken(let taken)? = reply.body {
                    delivery.answered(taken.oplogIds, missed: taken.missedIds)
                } else {
                    delivery.answered(nil)
                }
            }
        }
    }

    /// Answers pushes that are stored nowhere. What is known of them is on record before the answer: a repeat that comes
    /// after an answer is a duplicate on every writer (spec D18).
    ///
    /// That nobody takes a repeat says nothing of the first call, whose notice a device may have taken: that outcome
    /// stays unknown, but for a repeat in the group of the first call.
    private func answer(_ pushes: [NoticePlan.Stored], _ outcome: (OplogID) -> LiveDelivery.Outcome) {
        let firsts = Set(pushes.filter { !$0.appended.isDuplicate }.map(\.key))
        let outcomes: [(NoticePlan.Stored, LiveDelivery.Outcome)] = pushes.map { push in
            let delivery = outcome(push.appended.oplogID)
            return (push, delivery == .notTaken && !firsts.contains(push.key) ? .uncertain : delivery)
        }
        for (push, delivery) in outcomes where delivery == .uncertain { answer(push, delivery) }
        let known = outcomes.filter { $0.1 != .uncertain }
        guard !known.isEmpty else { return }
        recordOutcomes(known.map(\.0.appended.livePush)) { [self] in
            bus.together { for (push, delivery) in known { answer(push, delivery) } }
        }
    }

    private func answer(_ push: NoticePlan.Stored, _ delivery: LiveDelivery.Outcome) {
        let appended = push.appended
        (appended.isDuplicate ? duplicates : stored).increment()
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = push.row.command.correlation
        if delivery == .uncertain {
            reply.append.outcome = .uncertain
        } else {
            reply.append.outcome = appended.isDuplicate ? .duplicate : .stored
        }
        reply.append.oplogID = appended.oplogID.value
        reply.append.online = delivery == .taken
        reply.append.validUntilMs = appended.validUntil.milliseconds
        reply.append.createdAtMs = appended.createdAt.milliseconds
        reply.databaseTimeMs = appended.databaseTime.milliseconds
        #if KNOWN_BAD
            if KnownBad.duplicateAnsweredAsNew.isOn { reply.append.oplogID = appended.headAfter.value }
        #endif
        bus.reply(reply, to: push.row.replyTo)
    }

    private func answerUnconfigured(_ row: Row) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = row.command.correlation
        reply.append.outcome = .noConfiguration
        bus.reply(reply, to: row.replyTo)
    }

    private func refuse(_ command: Command, to replyTo: String, _ detail: String) {
        var reply = Mss_Bus_V1_Reply()
        reply.correlation = command.correlation
        reply.append.outcome = .refused
        reply.append.detail = detail
        bus.reply(reply, to: replyTo)
    }
}
