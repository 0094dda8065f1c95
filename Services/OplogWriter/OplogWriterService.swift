import AMQP
import BusMessages
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle
import StoreService

/// Consumes every command queue of the oplog writer, and runs the store workers of each queue.
struct OplogWriterService: Service {
    /// Bodies per queue that RabbitMQ delivers before their acknowledgement: those that the store workers process, and
    /// those that are ready for them.
    private static let prefetch: UInt16 = 256

    private let bus: MessageBus
    private let runWorkers: [@Sendable () async -> Void]
    private let outcomes: OutcomeRecorder
    private let finishQueues: @Sendable () -> Void

    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, appendWorkers: Int, fetchWorkers: Int,
        ring: KeyRing, reporter: ProcessReporter?, tracer: PushTracer?, logger: Logger
    ) {
        var queues: [CommandQueue: WorkQueue<AMQPDelivery>] = [:]
        for queue in CommandQueue.allCases where queue.consumer == .writer { queues[queue] = WorkQueue() }
        let bus = MessageBus(
            configuration: amqp,
            consumptions: queues.map { queue, work in
                AMQPConsumption(queue: queue.rawValue, prefetch: Self.prefetch) { work.add(contentsOf: $0) }
            }, answers: [.taken], reporter: reporter, logger: logger)
        var runWorkers: [@Sendable () async -> Void] = []
        func addWorkers<Handler: CommandHandler>(_ handler: Handler, _ count: Int = 1) {
            guard let queue = queues[Handler.queue] else { return }
            for number in 0..<count {
                let worker = StoreWorker(
                    name: "\(Handler.queue.rawValue)-\(number)", configuration: postgres, queue: queue,
                    handler: handler,
                    logger: logger)
                runWorkers.append { await worker.run() }
            }
        }
        let outcomes = OutcomeRecorder(configuration: postgres, logger: logger)
        addWorkers(AppendHandler(bus: bus, recordOutcomes: outcomes.record, tracer: tracer), appendWorkers)
        addWorkers(SessionHandler(bus: bus))
        addWorkers(LeaseHandler(sessions: SessionHandler(bus: bus)))
        addWorkers(PageHandler(bus: bus), fetchWorkers)
        addWorkers(AcknowledgementHandler(bus: bus))
        addWorkers(SnapshotHandler(bus: bus))
        addWorkers(ControlHandler(bus: bus, ring: ring, logger: logger))
        let operations = BackendQueryHandler(bus: bus, logger: logger)
        addWorkers(operations)
        addWorkers(BackendCommandHandler(operations: operations), 2)
        addWorkers(AdmissionHandler(bus: bus))
        self.bus = bus
        self.runWorkers = runWorkers
        self.outcomes = outcomes
        finishQueues = { [queues] in
            for queue in queues.values { queue.finish() }
        }
    }

    /// Makes the next stages of roll-outs when they are due.
    var rollouts: RolloutClock { RolloutClock(bus: bus) }

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
