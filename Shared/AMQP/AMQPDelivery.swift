/// A message that the broker delivered and wants settled.
package struct AMQPDelivery: Sendable {
    package let body: [UInt8]
    /// The broker delivered it before and got no settlement.
    package let isRedelivered: Bool
    package let replyTo: String?
    /// When it was read off the socket.
    package let receivedAt: ContinuousClock.Instant
    /// The exchange that it was published to, by the broker's word; empty: straight to the queue.
    package let exchange: String
    /// Of the connection that it came by; tags are of that one.
    package let generation: UInt64
    package let deliveryTag: UInt64

    package init(
        body: [UInt8], isRedelivered: Bool, replyTo: String?, receivedAt: ContinuousClock.Instant, exchange: String,
        generation: UInt64, deliveryTag: UInt64
    ) {
        self.body = body
        self.isRedelivered = isRedelivered
        self.replyTo = replyTo
        self.receivedAt = receivedAt
        self.exchange = exchange
        self.generation = generation
        self.deliveryTag = deliveryTag
    }
}

/// How a delivery ends (AMQP 0-9-1, basic.ack and basic.reject).
package enum AMQPSettlement: Sendable {
    case accepted
    /// Back to its queue, for any consumer.
    case requeued
    /// Dropped, or dead-lettered where the queue says so.
    case rejected
}

/// A queue to consume from.
package struct AMQPConsumption: Sendable {
    package let queue: String
    /// Deliveries in hand at a time; nil: they need no settlement, as losing one is harmless.
    package let prefetch: UInt16?
    /// The exchange that leads to the queue: the client rejects messages that came through another one. The default
    /// exchange, to which the writer and administrators alone may publish, is always permitted. Nil: any exchange.
    package var exchange: String?
    /// Called on the connection's thread with all that was read together; it must not block.
    package let handler: @Sendable ([AMQPDelivery]) -> Void

    package init(queue: String, prefetch: UInt16?, handler: @escaping @Sendable ([AMQPDelivery]) -> Void) {
        self.queue = queue
        self.prefetch = prefetch
        self.handler = handler
    }

    /// Whether messages that were published to an exchange are taken.
    func permits(_ published: String) -> Bool { exchange.map { published.isEmpty || published == $0 } ?? true }
}

/// What a client tells its owner, always on the connection's thread; handlers must not block.
package struct AMQPEvents: Sendable {
    package let onConnected: @Sendable () -> Void
    package let onDisconnected: @Sendable () -> Void
    /// Bodies from the direct reply-to queue.
    package let onReplies: @Sendable ([[UInt8]]) -> Void
    /// No queue took this message.
    package let onReturned: @Sendable (AMQPRoute, [UInt8]) -> Void
    /// So many bodies were written, and so many read, in one turn: for who counts them.
    package let onTraffic: @Sendable (_ written: Int, _ read: Int) -> Void

    package init(
        onConnected: @escaping @Sendable () -> Void, onDisconnected: @escaping @Sendable () -> Void,
        onReplies: @escaping @Sendable ([[UInt8]]) -> Void,
        onReturned: @escaping @Sendable (AMQPRoute, [UInt8]) -> Void,
        onTraffic: @escaping @Sendable (_ written: Int, _ read: Int) -> Void = { _, _ in }
    ) {
        self.onConnected = onConnected
        self.onDisconnected = onDisconnected
        self.onReplies = onReplies
        self.onReturned = onReturned
        self.onTraffic = onTraffic
    }
}
