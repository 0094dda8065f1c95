package import ServiceLifecycle

/// The outcome of a message that was published with a confirmation (RabbitMQ: publisher confirms).
package enum PublishOutcome: Sendable {
    /// The broker has it.
    case confirmed
    /// No effect: the queue was full (overflow reject-publish), or the connection ended before the message was written.
    case refused
    /// The message was written, but the connection ended before the broker confirmed it.
    case unknown
}

/// A connection to the broker for a bus: `AMQPClient`, or a simulation.
package protocol AMQPTransport: Service, Sendable {
    /// Whether messages are accepted now: connected, and not blocked by the broker.
    var isConnected: Bool { get }

    /// Queues a body for writing. Never blocks; callable from any thread.
    ///
    /// - Parameters:
    ///   - batchingDelay: how long the body may wait to share a message with others. An earlier write takes it along.
    ///   - whenConfirmed: called once with the outcome, on the connection's thread; must not block. nil: the message is
    ///     not confirmed.
    /// - Throws: when nothing was queued.
    func send(
        _ body: [UInt8], on route: AMQPRoute, batchingDelay: Duration,
        whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
    ) throws(AMQPError)

    /// Queues acknowledgements for writing. Deliveries of an older connection are ignored.
    func acknowledge(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement)

    /// Runs a block of sends and acknowledgements. They leave after the block, in as few messages as possible, together
    /// with those of other threads. The block must not wait.
    func batched<Result>(_ sends: () -> Result) -> Result

    /// The depths of queues; missing queues are left out. For occasional use: each queue costs a round trip to the
    /// broker, during which this connection does nothing else.
    func depths(of queues: [String]) async throws(AMQPError) -> [String: AMQPQueueDepth]
}

extension AMQPTransport {
    /// Queues a body for writing at once.
    package func send(
        _ body: [UInt8], on route: AMQPRoute, whenConfirmed: (@Sendable (PublishOutcome) -> Void)? = nil
    ) throws(AMQPError) {
        try send(body, on: route, batchingDelay: .zero, whenConfirmed: whenConfirmed)
    }
}

/// The depth of a queue (AMQP 0-9-1, queue.declare-ok).
package struct AMQPQueueDepth: Hashable, Sendable {
    /// Messages that wait, without those that are delivered and not acknowledged.
    package let messages: Int
    package let consumers: Int

    package init(messages: Int, consumers: Int) {
        self.messages = messages
        self.consumers = consumers
    }
}

/// Why the broker was not reached, or did not execute a request.
package struct AMQPError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No connection, or the broker has blocked this one: nothing was queued.
        case disconnected
        /// Too many bytes wait to be written: nothing was queued.
        case overloaded
        /// The connection failed, or the broker refused a declaration.
        case connection
        /// The broker refused a request about a queue. The connection stays open.
        case refused
    }

    package let code: Code
    package let message: String

    package init(code: Code, message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { "\(code): \(message)" }
}
