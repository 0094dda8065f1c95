import AMQP
import BusMessages
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle

/// The store's process: consumes every command queue and works them off on lanes of their own.
struct OplogWriterService: Service {
    /// Bodies in hand per queue: those that the lanes work on, and those that wait ready.
    private static let prefetch: UInt16 = 256

    private let bus: MessageBus
    private let runLanes: [@Sendable () async -> Void]
    private let outcomes: LiveOutcomeLane
    private let finishQueues: @Sendable () -> Void

    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, appendLanes: Int, fetchLanes: Int,
        ring: KeyRing, reporter: ProcessReporter?, tracer: PushTracer?, logger: Logger
    ) {
        var queues: [CommandQueue: WorkQueue<AMQPDelivery>] = [:]
        for queue in CommandQueue.allCases where queue.consumer == .writer { queues[queue] = WorkQueue() }
        let bus = MessageBus(
            configuration: amqp,
            consumptions: queues.map { queue, work in
                AMQPConsumption(queue: queue.rawValue, prefetch: Self.prefetch) { work.add(contentsOf: $0) }
            }, answers: [.taken], reporter: reporter, logger: logger)
        var runLanes: [@Sendable () async -> Void] = []
        func addLanes<Work: LaneWork>(_ work: Work, _ count: Int = 1) {
            guard let queue = queues[Work.queue] else { return }
            for number in 0..<count {
                let lane = Lane(
                    name: "\(Work.queue.rawValue)-\(number)", configuration: postgres, queue: queue, work: work,
                    logger: logger)
                runLanes.append { await lane.run() }
            }
        }
        let outcomes = LiveOutcomeLane(configuration: postgres, logger: logger)
        addLanes(AppendWork(bus: bus, recordOutcomes: outcomes.record, tracer: tracer), appendLanes)
        addLanes(SessionWork(bus: bus))
        addLanes(LeaseWork(sessions: SessionWork(bus: bus)))
        addLanes(FetchWork(bus: bus), fetchLanes)
        addLanes(AckWork(bus: bus))
        addLanes(SnapshotWork(bus: bus))
        addLanes(ControlWork(bus: bus, ring: ring, logger: logger))
        let operations = OperationWork(bus: bus, logger: logger)
        addLanes(operations)
        addLanes(BackendWork(operations: operations), 2)
        addLanes(AdmissionWork(bus: bus))
        self.bus = bus
        self.runLanes = runLanes
        self.outcomes = outcomes
        finishQueues = { [queues] in
            for queue in queues.values { queue.finish() }
        }
    }

    /// What moves roll-outs on.
    var rollouts: RolloutClock { RolloutClock(bus: bus) }

    /// The database's time in this process.
    var databaseTime: SharedDatabaseClock { bus.databaseTime }

    /// Whether the broker is there.
    var isConnected: Bool { bus.isConnected }

    /// Tells the listener whenever the broker comes or goes.
    func onConnectionChange(_ listener: @escaping @Sendable (Bool) -> Void) { bus.onConnectionChange(listener) }

    /// On shutdown consuming ends first, then what is in hand is finished.
    func run() async throws {
        async let recording: Void = outcomes.run()
        // The other lanes add outcomes until they have returned.
        defer { outcomes.finish() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in runLanes { group.addTask { await lane() } }
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
