/// A message from the broker that waits for its acknowledgement.
package struct AMQPDelivery: Sendable {
    package let body: [UInt8]
    /// The broker has delivered it before, without an acknowledgement.
    package let isRedelivered: Bool
    package let replyTo: String?
    /// When it was read from the socket.
    package let receivedAt: ContinuousClock.Instant
    /// The exchange to which it was published, as the broker reports it; empty: the default exchange.
    package let exchange: String
    /// The connection on which it arrived; tags belong to that connection.
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

/// How a delivery is acknowledged (AMQP 0-9-1, basic.ack and basic.reject).
package enum AMQPSettlement: Sendable {
    case accepted
    /// Returned to its queue, for any consumer.
    case requeued
    /// Dropped, or moved to the queue's dead letter exchange.
    case rejected
}

/// A queue to consume from.
package struct AMQPConsumption: Sendable {
    package private(set) var queue: String
    /// Maximum number of unacknowledged deliveries. A nil value means: deliveries need no acknowledgement, because a
    /// loss is harmless.
    package let prefetch: UInt16?
    /// The queue's own exchange. The client rejects messages from other exchanges. The default exchange, to which only
    /// administrators may publish, is always permitted. A nil value means: any exchange.
    package var exchange: String?
    /// Called on the connection's thread with all deliveries of one read; must not block.
    package let handler: @Sendable ([AMQPDelivery]) -> Void

    package init(queue: String, prefetch: UInt16?, handler: @escaping @Sendable ([AMQPDelivery]) -> Void) {
        self.queue = queue
        self.prefetch = prefetch
        self.handler = handler
    }

    /// The same, with the queue's new name if it has one.
    func renaming(_ names: [String: String]) -> AMQPConsumption {
        var renamed = self
        renamed.queue = names[queue] ?? queue
        return renamed
    }

    /// Whether messages from this exchange are accepted.
    func permits(_ published: String) -> Bool { exchange.map { published.isEmpty || published == $0 } ?? true }
}

/// Callbacks of a client, always on the connection's thread; they must not block.
package struct AMQPEvents: Sendable {
    package let onConnected: @Sendable () -> Void
    package let onDisconnected: @Sendable () -> Void
    /// The broker returned this message, because no queue accepted it.
    package let onReturned: @Sendable (AMQPRoute, [UInt8]) -> Void
    /// The number of bodies that one turn wrote and read, for metrics.
    package let onTraffic: @Sendable (_ written: Int, _ read: Int) -> Void

    package init(
        onConnected: @escaping @Sendable () -> Void, onDisconnected: @escaping @Sendable () -> Void,
        onReturned: @escaping @Sendable (AMQPRoute, [UInt8]) -> Void,
        onTraffic: @escaping @Sendable (_ written: Int, _ read: Int) -> Void = { _, _ in }
    ) {
        self.onConnected = onConnected
        self.onDisconnected = onDisconnected
        self.onReturned = onReturned
        self.onTraffic = onTraffic
    }
}
