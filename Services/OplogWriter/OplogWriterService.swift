import AMQP
import BusMessages
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import StoreService
import SyncStore

/// Consumes every command queue of the oplog writer, and runs the store workers of each queue.
struct OplogWriterService: Service {
    private let bus: MessageBus
    private let runWorkers: [@Sendable () async -> Void]
    private let outcomes: OutcomeRecorder
    private let stores: StoreLayout
    private let finishQueues: @Sendable () -> Void

    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, stores: StoreLayout, appendWorkers: Int,
        fetchWorkers: Int, ring: KeyRing, reporter: ProcessReporter?, tracer: PushTracer?, logger: Logger
    ) {
        var consumptions: [AMQPConsumption] = []
        var finishing: [@Sendable () -> Void] = []
        func consume<Handler: CommandHandler>(by work: WorkQueues<Handler>) -> WorkQueues<Handler> {
            consumptions.append(work.consumption)
            finishing.append { work.finish() }
            return work
        }
        // Commands that many devices and callers cause at once have a work queue for each store. The others are few, or
        // only read.
        let appends = consume(by: WorkQueues<AppendHandler>(of: stores))
        let acknowledgements = consume(by: WorkQueues<AcknowledgementHandler>(of: stores))
        let sessions = consume(by: WorkQueues<SessionHandler>())
        let leases = consume(by: WorkQueues<LeaseHandler>())
        let pages = consume(by: WorkQueues<PageHandler>())
        let snapshots = consume(by: WorkQueues<SnapshotHandler>())
        let control = consume(by: WorkQueues<ControlHandler>())
        let queries = consume(by: WorkQueues<BackendQueryHandler>())
        let backends = consume(by: WorkQueues<BackendCommandHandler>())
        let admissions = consume(by: WorkQueues<AdmissionHandler>())
        let bus = MessageBus(
            configuration: amqp, consumptions: consumptions, answers: [.taken], reporter: reporter, logger: logger)
        var runWorkers: [@Sendable () async -> Void] = []
        /// Adds `count` workers in all, but at least one for each work queue.
        func addWorkers<Handler: CommandHandler>(
            _ handler: Handler, _ work: WorkQueues<Handler>, _ count: Int = 1
        ) {
            for number in 0..<max(count, work.queues.count) {
                let worker = StoreWorker(
                    name: "\(Handler.queue.rawValue)-\(number)", configuration: postgres, stores: stores,
                    queue: work.queues[number % work.queues.count], handler: handler, logger: logger)
                runWorkers.append { await worker.run() }
            }
        }
        let outcomes = OutcomeRecorder(configuration: postgres, stores: stores, logger: logger)
        let append = AppendHandler(bus: bus, stores: stores, recordOutcomes: outcomes.record, tracer: tracer)
        addWorkers(append, appends, appendWorkers)
        addWorkers(AcknowledgementHandler(bus: bus, stores: stores), acknowledgements)
        addWorkers(SessionHandler(bus: bus, stores: stores), sessions)
        addWorkers(LeaseHandler(sessions: SessionHandler(bus: bus, stores: stores)), leases)
        addWorkers(PageHandler(bus: bus, stores: stores), pages, fetchWorkers)
        addWorkers(SnapshotHandler(bus: bus), snapshots)
        addWorkers(ControlHandler(bus: bus, ring: ring, logger: logger), control)
        let operations = BackendQueryHandler(bus: bus, stores: stores, logger: logger)
        addWorkers(operations, queries)
        addWorkers(BackendCommandHandler(operations: operations), backends, 2)
        addWorkers(AdmissionHandler(bus: bus), admissions)
        self.bus = bus
        self.stores = stores
        self.runWorkers = runWorkers
        self.outcomes = outcomes
        finishQueues = { [finishing] in
            for finish in finishing { finish() }
        }
    }

    /// Makes the next stages of roll-outs when they are due.
    var rollouts: RolloutClock { RolloutClock(bus: bus, stores: stores) }

    /// The database time, as this process computes it.
    var databaseTime: SharedDatabaseClock { bus.databaseTime }

    /// Whether the connection to RabbitMQ is open.
    var isConnected: Bool { bus.isConnected }

    /// Calls the listener each time the connection to RabbitMQ opens (true) or ends (false).
    func onConnectionChange(_ listener: @escaping @Sendable (Bool) -> Void) { bus.onConnectionChange(listener) }

    /// On shutdown, the process first stops consuming. Then it executes the commands that it has received.
    func run() async throws {
        async let recording: Void = outcomes.run()
        // The store workers add outcomes until they have returned.
        defer { outcomes.finish() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for runWorker in runWorkers { group.addTask { await runWorker() } }
            group.addTask {
                defer { finishQueues() }
                try await bus.run()
            }
            try await group.waitForAll()
        }
        outcomes.finish()
        await recording
    }
}
