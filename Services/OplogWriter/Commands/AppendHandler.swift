import AMQP
import BusMessages
import Foundation
import Metrics
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore

/// Stores pushes in one transaction for each group, then sends the notices and the replies.
struct AppendHandler: StoreCommandHandler {
    typealias Command = Mss_Bus_V1_AppendCommand

    static let queue = CommandQueue.append
    static let groupBodies = 32
    /// The largest number of rows in one transaction. Larger batches only add latency.
    static let groupRows = 100

    /// Records that the outcomes of these pushes are known, then calls back, also if the record could not be written.
    typealias RecordingOutcomes =
        @Sendable (_ pushes: [OplogStore.LivePush], _ completion: @escaping @Sendable () -> Void) -> Void

    let bus: MessageBus
    let stores: StoreLayout
    private let clock: ProcessClock
    private let recordOutcomes: RecordingOutcomes
    private let tracer: PushTracer?
    private let stored = Counter(label: "mss_writer_oplogs_stored")
    private let duplicates = Counter(label: "mss_writer_duplicates")
    private let batchRows = Recorder(label: "mss_writer_append_batch_rows")
    private let time = Timer(label: "mss_writer_append")

    /// - Parameters:
    ///   - stores: the commands of one call of `perform` all belong to one of them.
    ///   - recordOutcomes: records the outcomes of non-persistent pushes.
    ///   - tracer: nil: no push is traced.
    init(
        bus: MessageBus, stores: StoreLayout = .single, recordOutcomes: @escaping RecordingOutcomes,
        clock: ProcessClock = .system, tracer: PushTracer? = nil
    ) {
        self.bus = bus
        self.stores = stores
        self.clock = clock
        self.recordOutcomes = recordOutcomes
        self.tracer = tracer
    }

    static func commands(of body: [UInt8]) -> [Command]? { Mss_Bus_V1_AppendCommands.elements(of: body) }

    static func storeNumber(of command: Command, in stores: StoreLayout) -> Int {
        // A worker refuses a command of an unknown kind.
        TargetAddress(bus: command.target).map { stores.number(of: $0.instanceID, target: $0.target) } ?? 0
    }

    /// One push of the group.
    struct Row {
        let command: Command
        let replyTo: String
        let append: OplogStore.Append
    }

    func perform(_ tasks: [StoreTask<Command>], on connection: PostgresConnection) {
        perform(tasks, in: DeliveryDatabase(connection, stores))
    }

    func perform(_ tasks: [StoreTask<Command>], in store: some DeliveryStore) {
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
        bus.acknowledge(tasks)
    }

    /// The time at which the first caller of the body gives up. A redelivered body is executed also after the deadlines
    /// of its commands, because its first consumer may have committed it.
    private func deadline(of task: StoreTask<Command>) -> ContinuousClock.Instant {
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

    /// Stores rows and replies to them.
    ///
    /// A row that the database refuses must not fail the other rows. A channel that another transaction has locked must
    /// not delay the others: after the first lock time-out its rows fail, and the other rows are stored at once.
    ///
    /// - Parameters:
    ///   - deadline: after this time no part is stored a second time.
    ///   - last: after this time nothing is stored, because every caller has given up.
    private func append(
        _ rows: [Row], to store: some DeliveryStore, repeatingUntil deadline: ContinuousClock.Instant,
        until last: ContinuousClock.Instant
    ) {
        var plan = BatchPlan(rows, partMax: Self.groupRows) { $0.append.address }
        while let step = plan.next() {
            switch step {
            case .store(let part):
                guard clock.now() < last else {
                    plan.failed(
                        with: PostgresError(
                            code: .unavailable, message: "the deadline of the command has passed", mayRetry: true),
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
                refuse(row.command, to: row.replyTo, "the database refused a value (SQLSTATE \(sqlState))")
            case .fail(let part, let error):
                for row in part { fail(row.command.correlation, to: row.replyTo, with: error) }
            }
        }
    }

    /// The channels of these rows that are still locked after a lock time-out. Empty if the query fails: the next
    /// attempt then only takes longer.
    private func lockedChannels(
        of rows: [Row], _ error: PostgresError, _ store: some DeliveryStore
    ) -> Set<ChannelAddress> {
        guard error.sqlState == "55P03" else { return [] }
        return (try? store.lockedChannels(of: Set(rows.map(\.append.address)))) ?? []
    }

    private func appendTogether(_ rows: [Row], to store: some DeliveryStore) throws(PostgresError) {
        // The sessions are read after the commit. A session that this query does not see registers later, and then
        // reads a backlog that contains the push (Design.md#notices-and-pages).
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
            // The pushes are stored, but their sessions are unknown. The reply says that the outcome is unknown, and
            // the sweep delivers the pushes.
            bus.batched {
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
        bus.batched {
            let steps = NoticePlan.steps(of: stored, everyGateway: everyGateway)
            for step in steps { notify(step) }
            for push in stored where !push.awaitsOutcome { answer(push, push.isOnline ? .taken : .notTaken) }
            let handedOut = Set(steps.flatMap(\.awaitingOutcome).map(\.key))
            answer(stored.filter { $0.awaitsOutcome && !handedOut.contains($0.key) }) { _ in .notTaken }
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
            tracer.record(
                .store, of: trace, since: start,
                ["mss.oplog_id": "\(answer.oplogID.value)", "mss.batch": "\(rows.count)"])
        }
    }

    /// The gateways that get an immediate global push. Empty if the query fails: the push is committed, and devices
    /// read it when they connect.
    private func everyGateway(for pushes: [NoticePlan.Stored], in store: some DeliveryStore) -> [String] {
        guard pushes.contains(where: \.appended.isImmediate) else { return [] }
        return (try? store.leaseRecord())?.gatewayIDs ?? []
    }

    /// Sends a notice to its gateways. Non-persistent pushes in it are answered after the gateways have replied.
    private func notify(_ step: NoticePlan.ChannelStep) {
        guard !step.awaitingOutcome.isEmpty else {
            for gatewayID in step.gatewayIDs { bus.notify(gateway: gatewayID, step.notice) }
            return
        }
        let delivery = NonPersistentDelivery(gateways: step.gatewayIDs.count) { [self] outcome in
            answer(step.awaitingOutcome, outcome)
        }
        for gatewayID in step.gatewayIDs {
            bus.notify(gateway: gatewayID, timeout: NonPersistentDelivery.limit) { correlation in
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

    /// Replies to non-persistent pushes. A known outcome is recorded before the reply, so a repeat after the reply is a
    /// duplicate on every writer (D18).
    ///
    /// If no gateway accepts a repeat, the first call is still uncertain, because a device may have received its
    /// notice. The exception is a repeat in the same group as the first call.
    private func answer(_ pushes: [NoticePlan.Stored], _ outcome: (OplogID) -> NonPersistentDelivery.Outcome) {
        let firsts = Set(pushes.filter { !$0.appended.isDuplicate }.map(\.key))
        let outcomes: [(NoticePlan.Stored, NonPersistentDelivery.Outcome)] = pushes.map { push in
            let delivery = outcome(push.appended.oplogID)
            return (push, delivery == .notTaken && !firsts.contains(push.key) ? .uncertain : delivery)
        }
        for (push, delivery) in outcomes where delivery == .uncertain { answer(push, delivery) }
        let known = outcomes.filter { $0.1 != .uncertain }
        guard !known.isEmpty else { return }
        recordOutcomes(known.map(\.0.appended.livePush)) { [self] in
            bus.batched { for (push, delivery) in known { answer(push, delivery) } }
        }
    }

    private func answer(_ push: NoticePlan.Stored, _ delivery: NonPersistentDelivery.Outcome) {
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
