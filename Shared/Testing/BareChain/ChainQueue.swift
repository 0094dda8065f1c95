import AMQP

/// A queue of the bare chain, on the default exchange.
///
/// The queues are durable and the messages transient, as the command queues of the service are.
enum ChainQueue: String {
    /// Pushes, from the ingest to the writer.
    case pushes = "bare.pushes"
    /// Stored pushes, from the writer to the gateway.
    case notices = "bare.notices"

    /// The declaration, for the consumer of the queue.
    var topology: AMQPTopology {
        AMQPTopology(
            queues: [
                AMQPQueue(name: rawValue, durable: true, exclusive: false, autoDelete: false, maxLength: nil)
            ])
    }

    /// The exclusive queue for the replies to one ingest.
    static func replies(to queue: String) -> AMQPTopology {
        AMQPTopology(
            queues: [AMQPQueue(name: queue, durable: false, exclusive: true, autoDelete: true, maxLength: nil)])
    }

    /// The route to the queue.
    ///
    /// - Parameter replyTo: address of the reply. The value is nil if none is expected.
    func route(replyTo: String? = nil) -> AMQPRoute { Self.route(to: rawValue, replyTo: replyTo) }

    /// The route to a reply address.
    static func reply(to address: String) -> AMQPRoute { route(to: address, replyTo: nil) }

    private static func route(to queue: String, replyTo: String?) -> AMQPRoute {
        AMQPRoute(
            exchange: "", routingKey: queue, expiration: nil, isPersistent: false, isMandatory: false,
            replyTo: replyTo)
    }
}

extension AMQPEvents {
    /// Events of a client that needs at most the end of the connection.
    static func chain(onDisconnected: @escaping @Sendable () -> Void = {}) -> AMQPEvents {
        AMQPEvents(onConnected: {}, onDisconnected: onDisconnected, onReturned: { _, _ in })
    }
}
