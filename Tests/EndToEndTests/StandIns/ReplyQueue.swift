import AMQP
import BusMessages
import Foundation

/// The exclusive queue of a test's process for the replies of one tier.
struct ReplyQueue {
    let key = UUID().uuidString
    private let exchange: AnswerExchange

    init(_ exchange: AnswerExchange) { self.exchange = exchange }

    private var name: String { exchange.queue(key: key) }

    var topology: AMQPTopology {
        AMQPTopology(
            queues: [AMQPQueue(name: name, durable: false, exclusive: true, autoDelete: true, maxLength: nil)],
            bindings: [AMQPBinding(queue: name, exchange: exchange.rawValue, routingKey: key)])
    }

    /// Passes the bodies on as they arrive.
    func consumption(_ handle: @escaping @Sendable ([[UInt8]]) -> Void) -> AMQPConsumption {
        AMQPConsumption(queue: name, prefetch: nil) { handle($0.map(\.body)) }
    }
}
