import AMQP
import BusMessages
import ServiceKit
import StoreService
import SyncStore

@testable import OplogWriter

/// An oplog writer: its real command handlers over the simulated broker and database. A store worker takes the waiting
/// bodies of its queue and is busy for a moment.
final class SimulatedWriter {
    /// The bodies that wait for the store workers.
    // Unchecked: see Simulation.
    private final class Inbox: @unchecked Sendable {
        var waiting: [CommandQueue: [AMQPDelivery]] = [:]
        var whenFilled: (CommandQueue) -> Void = { _ in }
    }

    /// The store for the outcomes of non-persistent pushes.
    // Unchecked: see Simulation.
    private struct Outcomes: @unchecked Sendable {
        let store: SimulatedDatabaseConnection
    }

    let process: SimulatedProcess
    private let database: SimulatedDatabase
    private let inbox = Inbox()
    private let append: AppendHandler
    private let session: SessionHandler
    private let lease: LeaseHandler
    private let fetch: PageHandler
    private let ack: AcknowledgementHandler
    private var busyWorkers: [CommandQueue: Int] = [:]
    private var leases = LeaseExpiryTracker()
    /// Whether the writer dies right after the next commit of an append, before it replies.
    var diesAfterCommit = false
    /// The longest time until the reply to a commit is sent, and until a page is read.
    var commitTakes = Duration.zero
    var pageTakes = Duration.milliseconds(6)

    init(_ name: String, number: UInt64, database: SimulatedDatabase, broker: SimulatedBroker) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        self.process = process
        self.database = database
        let handlers: [any CommandHandler.Type] = [
            AppendHandler.self, SessionHandler.self, LeaseHandler.self, PageHandler.self, AcknowledgementHandler.self,
        ]
        let bus = MessageBus(
            consumptions: handlers.map { [inbox] handler in
                let queue = handler.queue
                return AMQPConsumption(queue: queue.rawValue, prefetch: handler.prefetch) { deliveries in
                    inbox.waiting[queue, default: []] += deliveries
                    inbox.whenFilled(queue)
                }
            }, answers: [.taken], replyKey: { "\($0.rawValue) \(process.id)" }, clock: process.clock,
            logger: process.logger,
            over: process.connecting(to: broker))
        let outcomes = Outcomes(store: SimulatedDatabaseConnection(database: database, process: process))
        let recordOutcomes: AppendHandler.RecordingOutcomes = { pushes, completion in
            try? outcomes.store.recordOutcomes(of: pushes)
            completion()
        }
        append = AppendHandler(bus: bus, recordOutcomes: recordOutcomes, clock: process.clock)
        session = SessionHandler(bus: bus)
        lease = LeaseHandler(sessions: session)
        fetch = PageHandler(bus: bus)
        ack = AcknowledgementHandler(bus: bus)
        inbox.whenFilled = { [weak self] in self?.startWork($0) }
        process.every(.milliseconds(100)) { bus.expireRequests() }
        process.every(.seconds(1)) { [weak self] in self?.expireLeases() }
    }

    private func expireLeases() {
        let store = SimulatedDatabaseConnection(database: database, process: process)
        try? leases.tick(in: store, clock: process.clock)
    }

    private func startWork(_ queue: CommandQueue) {
        let workers = queue == .append || queue == .fetch ? 2 : 1
        guard busyWorkers[queue, default: 0] < workers, inbox.waiting[queue]?.isEmpty == false else { return }
        busyWorkers[queue, default: 0] += 1
        // The statement takes a moment.
        let simulation = process.simulation
        let longest = queue == .fetch ? pageTakes : .milliseconds(6)
        simulation.after(simulation.pick(.microseconds(300), longest)) { [weak self] in
            self?.process.perform { [weak self] in self?.work(on: queue) }
        }
    }

    private func work(on queue: CommandQueue) {
        busyWorkers[queue, default: 1] -= 1
        defer { startWork(queue) }
        switch queue {
        case .append: work(append) { $0.perform($1, in: $2) }
        case .session: work(session) { $0.perform($1, in: $2) }
        case .lease: work(lease) { $0.perform($1, in: $2) }
        case .ack: work(ack) { $0.perform($1, in: $2) }
        case .fetch:
            work(fetch) { work, tasks, store in
                for task in tasks { work.readPages(of: task, from: store) }
                work.bus.acknowledge(tasks)
            }
        default: break
        }
    }

    private func work<Work: CommandHandler>(
        _ work: Work, _ perform: (Work, [StoreTask<Work.Command>], SimulatedDatabaseConnection) -> Void
    ) {
        let deliveries = Array(inbox.waiting[Work.queue, default: []].prefix(Work.groupBodies))
        inbox.waiting[Work.queue]?.removeFirst(deliveries.count)
        let bodies = deliveries.map { CommandBody<Work.Command>($0) }
        let tasks = work.tasks(of: bodies, now: process.simulation.now, logger: process.logger)
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
