import AMQP
import BusMessages
import Credentials
import Logging
import PostgreSQL
import ServiceKit
import ServiceLifecycle

/// The store's process: consumes every command queue and works them off on lanes of their own.
struct OplogWriterService: Service {
    /// Bodies in hand per queue: what the lanes work on, what waits ready, and what waits for its facts.
    private static let prefetch: UInt16 = 256

    private let bus: MessageBus
    private let factBook: FactBook
    private let runLanes: [@Sendable () async -> Void]
    private let finishQueues: @Sendable () -> Void

    init(
        amqp: AMQPConfiguration, postgres: PostgresConfiguration, appendLanes: Int, fetchLanes: Int,
        ring: KeyRing, logger: Logger
    ) {
        let queues = (
            append: WorkQueue<AMQPDelivery>(), session: WorkQueue<AMQPDelivery>(), fetch: WorkQueue<AMQPDelivery>(),
            ack: WorkQueue<AMQPDelivery>(), control: WorkQueue<AMQPDelivery>(), operation: WorkQueue<AMQPDelivery>(),
            admission: WorkQueue<AMQPDelivery>()
        )
        func consumption(_ queue: String, _ work: WorkQueue<AMQPDelivery>) -> AMQPConsumption {
            AMQPConsumption(queue: queue, prefetch: Self.prefetch) { work.add(contentsOf: $0) }
        }
        let bus = MessageBus(
            configuration: amqp,
            consumptions: [
                consumption(AppendWork.queue.rawValue, queues.append),
                consumption(SessionWork.queue.rawValue, queues.session),
                consumption(FetchWork.queue.rawValue, queues.fetch),
                consumption(AckWork.queue.rawValue, queues.ack),
                consumption(ControlWork.queue.rawValue, queues.control),
                consumption(OperationWork.queue.rawValue, queues.operation),
                consumption(AdmissionWork.queue.rawValue, queues.admission),
            ], answers: .taken, logger: logger)
        func lanes<Work: LaneWork>(
            _ count: Int, _ name: String, _ queue: WorkQueue<AMQPDelivery>, _ work: Work
        ) -> [@Sendable () async -> Void] {
            (0..<count).map { number in
                let lane = Lane(
                    name: "\(name)-\(number)", configuration: postgres, queue: queue, work: work, logger: logger)
                return { await lane.run() }
            }
        }
        let factBook = FactBook(bus: bus)
        self.bus = bus
        self.factBook = factBook
        runLanes =
            lanes(appendLanes, "append", queues.append, AppendWork(bus: bus, factBook: factBook))
            + lanes(1, "session", queues.session, SessionWork(bus: bus))
            + lanes(fetchLanes, "fetch", queues.fetch, FetchWork(bus: bus))
            + lanes(1, "ack", queues.ack, AckWork(bus: bus))
            + lanes(1, "control", queues.control, ControlWork(bus: bus, ring: ring, logger: logger))
            + lanes(2, "operation", queues.operation, OperationWork(bus: bus, logger: logger))
            + lanes(1, "admission", queues.admission, AdmissionWork(bus: bus))
        finishQueues = {
            let (commands, others) = ([queues.append, queues.session, queues.fetch], [queues.ack, queues.control])
            for queue in commands + others + [queues.operation, queues.admission] { queue.finish() }
        }
    }

    /// Whether the broker is there.
    var isConnected: Bool { bus.isConnected }

    /// Tells the listener whenever the broker comes or goes.
    func onConnectionChange(_ listener: @escaping @Sendable (Bool) -> Void) { bus.onConnectionChange(listener) }

    /// On shutdown consuming ends first, then what is in hand is finished.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in runLanes { group.addTask { await lane() } }
            group.addTask {
                defer { finishQueues() }
                try await withThrowingTaskGroup(of: Void.self) { serving in
                    serving.addTask { try await bus.run() }
                    serving.addTask { await factBook.run() }
                    try await serving.next()
                    serving.cancelAll()
                }
            }
            try await group.waitForAll()
        }
    }
}
