import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import Synchronization
import Testing

@Suite("H1: commands that the broker refuses") struct CommandRefusalTests {
    /// A connection whose broker ends every confirmed message in the same way.
    private final class Connection: AMQPTransport {
        private let outcome: PublishOutcome

        init(ending outcome: PublishOutcome) { self.outcome = outcome }

        let isConnected = true
        func run() async throws {}
        func send(
            _ body: [UInt8], on route: AMQPRoute, batchingDelay: Duration,
            whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
        ) throws(AMQPError) { whenConfirmed?(outcome) }
        func acknowledge(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {}
        func batched<Result>(_ sends: () -> Result) -> Result { sends() }
        func depths(of queues: [String]) async throws(AMQPError) -> [String: AMQPQueueDepth] { [:] }
    }

    private func bus(ending outcome: PublishOutcome) -> MessageBus {
        MessageBus(consumptions: [], logger: Logger(label: "test")) { _, _, _ in Connection(ending: outcome) }
    }

    @Test("a full queue ends a request, and each request of a group, at once: it was not attempted") func full() async {
        let bus = bus(ending: .refused)
        // Not awaited: a request that stays open must fail the test, not hold it up.
        let code = Mutex<BusError.Code?>(nil)
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { number in
            .with { $0.correlation = number }
        } completion: { result in
            if case .failure(let error) = result { code.withLock { $0 = error.code } }
        }
        #expect(code.withLock { $0 } == .unavailable)
        let results = await bus.requests(.append, as: Mss_Bus_V1_AppendCommands.self, count: 3) { _, number in
            .with { $0.correlation = number }
        }
        let codes = results.map { result -> BusError.Code? in
            if case .failure(let error) = result { error.code } else { nil }
        }
        #expect(codes == [.unavailable, .unavailable, .unavailable])
    }

    @Test("a message of unknown outcome leaves its request open until the deadline") func unknown() {
        let bus = bus(ending: .unknown)
        let code = Mutex<BusError.Code?>(nil)
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self, timeout: .zero) { number in
            .with { $0.correlation = number }
        } completion: { result in
            if case .failure(let error) = result { code.withLock { $0 = error.code } }
        }
        #expect(code.withLock { $0 } == nil)
        bus.expireRequests()
        #expect(code.withLock { $0 } == .unanswered)
    }

    @Test("every queue that a process declares is durable or exclusive: RabbitMQ 4 deprecates any other")
    func durable() {
        let declared = Mutex<[AMQPQueue]>([])
        _ = MessageBus(
            consumptions: CommandQueue.allCases.map { AMQPConsumption(queue: $0.rawValue, prefetch: 1) { _ in } },
            answers: AnswerExchange.allCases, logger: Logger(label: "test")
        ) { topology, _, _ in
            declared.withLock { $0 = topology.queues }
            return Connection(ending: .confirmed)
        }
        let queues = declared.withLock { $0 }
        #expect(queues.count == CommandQueue.allCases.count + AnswerExchange.allCases.count)
        #expect(queues.allSatisfy { $0.durable || $0.exclusive })
    }
}
