import AMQP
import BusMessages
import ServiceKit
import SyncStore

@testable import OplogWriter

/// An oplog writer: its real works over the simulated broker and database. A lane takes what waits, as lanes do, and is
/// busy for a moment.
final class SimulatedWriter {
    /// What waits for the lanes.
    // Unchecked: see Simulation.
    private final class Inbox: @unchecked Sendable {
        var waiting: [CommandQueue: [AMQPDelivery]] = [:]
        var whenFilled: (CommandQueue) -> Void = { _ in }
    }

    /// Where the outcomes of live pushes are recorded.
    // Unchecked: see Simulation.
    private struct Outcomes: @unchecked Sendable {
        let store: SimulatedDatabaseConnection
    }

    private static let prefetch: UInt16 = 256
    let process: SimulatedProcess
    private let database: SimulatedDatabase
    private let inbox = Inbox()
    private let append: AppendWork
    private let session: SessionWork
    private let lease: LeaseWork
    private let fetch: FetchWork
    private let ack: AckWork
    private var busyLanes: [CommandQueue: Int] = [:]
    private var leases = LeaseWatch()
    /// Dies right after the next commit of an append, before anybody hears of it.
    var diesAfterCommit = false
    /// How long it takes at the most until the answer to a commit is read, and until a page is.
    var commitTakes = Duration.zero
    var pageTakes = Duration.milliseconds(6)

    init(_ name: String, number: UInt64, database: SimulatedDatabase, broker: SimulatedBroker) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        self.process = process
        self.database = database
        let queues: [CommandQueue] = [.append, .session, .lease, .fetch, .ack]
        let bus = MessageBus(
            consumptions: queues.map { [inbox] queue in
                AMQPConsumption(queue: queue.rawValue, prefetch: Self.prefetch) { deliveries in
                    inbox.waiting[queue, default: []] += deliveries
                    inbox.whenFilled(queue)
                }
            }, answers: [.taken], processID: process.id, clock: process.clock, logger: process.logger,
            over: process.connecting(to: broker))
        let outcomes = Outcomes(store: SimulatedDatabaseConnection(database: database, process: process))
        let recordOutcomes: AppendWork.RecordingOutcomes = { pushes, completion in
            try? outcomes.store.recordOutcomes(of: pushes)
            completion()
        }
        append = AppendWork(bus: bus, recordOutcomes: recordOutcomes, clock: process.clock)
        session = SessionWork(bus: bus)
        lease = LeaseWork(sessions: session)
        fetch = FetchWork(bus: bus)
        ack = AckWork(bus: bus)
        inbox.whenFilled = { [weak self] in self?.turn($0) }
        process.every(.milliseconds(100)) { bus.expireRequests() }
        process.every(.seconds(1)) { [weak self] in self?.keepLeases() }
    }

    private func keepLeases() {
        let store = SimulatedDatabaseConnection(database: database, process: process)
        try? leases.tick(in: store, clock: process.clock)
    }

    private func turn(_ queue: CommandQueue) {
        let lanes = queue == .append || queue == .fetch ? 2 : 1
        guard busyLanes[queue, default: 0] < lanes, inbox.waiting[queue]?.isEmpty == false else { return }
        busyLanes[queue, default: 0] += 1
        // The statement is under way for a moment.
        let simulation = process.simulation
        let longest = queue == .fetch ? pageTakes : .milliseconds(6)
        simulation.after(simulation.pick(.microseconds(300), longest)) { [weak self] in
            self?.process.perform { [weak self] in self?.work(on: queue) }
        }
    }

    private func work(on queue: CommandQueue) {
        busyLanes[queue, default: 1] -= 1
        defer { turn(queue) }
        switch queue {
        case .append: work(append) { $0.perform($1, in: $2) }
        case .session: work(session) { $0.perform($1, in: $2) }
        case .lease: work(lease) { $0.perform($1, in: $2) }
        case .ack: work(ack) { $0.perform($1, in: $2) }
        case .fetch:
            work(fetch) { work, tasks, store in
                for task in tasks { work.readPages(of: task, from: store) }
                work.bus.settle(tasks.map(\.delivery), as: .accepted)
            }
        default: break
        }
    }

    private func work<Work: LaneWork>(
        _ work: Work, _ perform: (Work, [LaneTask<Work.Command>], SimulatedDatabaseConnection) -> Void
    ) {
        let deliveries = Array(inbox.waiting[Work.queue, default: []].prefix(Work.groupBodies))
        inbox.waiting[Work.queue]?.removeFirst(deliveries.count)
        let tasks = work.tasks(of: deliveries, now: process.simulation.now, logger: process.logger)
        guard !tasks.isEmpty else { return }
        var connection = SimulatedDatabaseConnection(database: database, process: process)
        if Work.queue == .append {
            connection.whenAppended = { [self] in
                if diesAfterCommit { process.kill() }
                process.connection?.hold(for: process.simulation.pick(.zero, commitTakes))
            }
        }
        perform(work, tasks, connection)
    }
}
