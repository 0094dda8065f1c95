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
        private let record: @Sendable (AMQPRoute) -> Void

        init(ending outcome: PublishOutcome, _ record: @escaping @Sendable (AMQPRoute) -> Void = { _ in }) {
            self.outcome = outcome
            self.record = record
        }

        let isConnected = true
        func run() async throws {}
        func send(
            _ body: [UInt8], on route: AMQPRoute, batchingDelay: Duration,
            whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
        ) throws(AMQPError) {
            record(route)
            whenConfirmed?(outcome)
        }
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

    @Test("SEC10: each tier gets another reply key, so that it cannot copy the replies of the others")
    func replyKeys() {
        let routes = Mutex<[AMQPRoute]>([])
        let declared = Mutex<[AMQPBinding]>([])
        let bus = MessageBus(
            consumptions: [], answers: AnswerExchange.allCases, logger: Logger(label: "test")
        ) { topology, _, _ in
            declared.withLock { $0 = topology.bindings }
            return Connection(ending: .unknown) { route in routes.withLock { $0.append(route) } }
        }
        bus.request(.fetch, as: Mss_Bus_V1_FetchCommands.self) { _ in
            .init()
        } completion: { _ in
        }
        bus.request(.validate, as: Mss_Bus_V1_ValidateCommands.self) { _ in
            .init()
        } completion: { _ in
        }
        bus.request(.submit, as: Mss_Bus_V1_SubmitCommands.self) { _ in
            .init()
        } completion: { _ in
        }
        bus.notify(gateway: "g", timeout: .seconds(1)) { _ in
            .init()
        } completion: { _ in
        }
        let keys = routes.withLock { $0 }.map(\.replyTo)
        #expect(Set(keys).count == AnswerExchange.allCases.count && !keys.contains(nil))
        let bound = declared.withLock { $0 }
        for (exchange, key) in zip([AnswerExchange.stored, .verdicts, .relayed, .taken], keys) {
            #expect(bound.first { $0.routingKey == key }?.exchange == exchange.rawValue)
        }
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
