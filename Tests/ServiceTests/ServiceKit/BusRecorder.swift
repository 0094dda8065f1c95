import AMQP
import BusMessages
import Logging
import ServiceKit
import SwiftProtobuf
import Synchronization

/// A connection without a broker. It records the messages and settlements of a bus, and delivers replies of the test.
final class BusRecorder: AMQPTransport {
    private struct State {
        /// Receives the replies of oplog writers.
        var replies: AMQPConsumption?
        var sent: [(body: [UInt8], route: AMQPRoute)] = []
        var settlements: [AMQPSettlement] = []
    }

    private let state = Mutex(State())

    /// Makes the bus over this connection.
    func makeBus(clock: ProcessClock = .system) -> MessageBus {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        return MessageBus(consumptions: [], clock: clock, logger: logger) { _, consumptions, _ in
            state.withLock { $0.replies = consumptions.first }
            return self
        }
    }

    // MARK: The test

    /// Returns and removes the commands that were sent to a queue.
    func takeCommands<E: Envelope>(to queue: CommandQueue, as _: E.Type) -> [E.Element] {
        removeMessages { $0.exchange == queue.exchange }.flatMap { E.elements(of: $0) ?? [] }
    }

    /// Returns and removes the replies that were sent to a caller.
    func takeReplies(to caller: String) -> [Mss_Bus_V1_Reply] {
        removeMessages { $0.routingKey == caller }.flatMap { Mss_Bus_V1_Replies.elements(of: $0) ?? [] }
    }

    /// The settlements of deliveries, in order.
    var settlements: [AMQPSettlement] { state.withLock { $0.settlements } }

    /// Delivers a reply to the bus.
    func deliver(_ reply: Mss_Bus_V1_Reply) {
        let replies = state.withLock { $0.replies }
        replies?.handler([
            AMQPDelivery(
                body: Mss_Bus_V1_Replies.body([reply]), isRedelivered: false, replyTo: nil, receivedAt: .now,
                exchange: AnswerExchange.stored.rawValue, generation: 1, deliveryTag: 1)
        ])
    }

    private func removeMessages(_ isWanted: (AMQPRoute) -> Bool) -> [[UInt8]] {
        let all = state.withLock { state in
            defer { state.sent = [] }
            return state.sent
        }
        let others = all.filter { !isWanted($0.route) }
        state.withLock { $0.sent = others + $0.sent }
        return all.filter { isWanted($0.route) }.map(\.body)
    }

    // MARK: The bus

    let isConnected = true

    func run() async throws {}

    func send(
        _ body: [UInt8], on route: AMQPRoute, batchingDelay: Duration,
        whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
    ) throws(AMQPError) { state.withLock { $0.sent.append((body, route)) } }

    func acknowledge(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {
        state.withLock { $0.settlements += deliveries.map { _ in settlement } }
    }

    func batched<Result>(_ sends: () -> Result) -> Result { sends() }

    func depths(of queues: [String]) async throws(AMQPError) -> [String: AMQPQueueDepth] { [:] }
}
