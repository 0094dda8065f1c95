package import ServiceLifecycle

/// The end of a message that was published with a confirmation (RabbitMQ: publisher confirms).
package enum PublishOutcome: Sendable {
    /// The broker has it.
    case confirmed
    /// It had no effect: the queue was full (overflow reject-publish), or the connection ended before it was written.
    case refused
    /// It was written, and the connection ended before the broker said anything.
    case unknown
}

/// What a bus needs of a connection to the broker. `AMQPClient` is the one that there is; a simulation has another.
package protocol AMQPTransport: Service, Sendable {
    /// Whether messages are taken now: connected, and not blocked by the broker.
    var isConnected: Bool { get }

    /// Leaves a body to be written; never blocks, callable from any thread.
    ///
    /// - Parameters:
    ///   - patience: how long it may wait for others to leave in one body with it; whatever leaves earlier takes it along.
    ///   - whenConfirmed: called once with what became of it, on the connection's thread; must not block. Nil: the
    ///     message is not confirmed.
    /// - Throws: nothing was queued then.
    func send(
        _ body: [UInt8], on route: AMQPRoute, patience: Duration, whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
    ) throws(AMQPError)

    /// Leaves settlements to be written; deliveries of an older connection are ignored.
    func settle(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement)

    /// Does what sends and settles; all of it leaves after it, in as few messages as can be. For a block that does not
    /// wait for anything: what others send meanwhile leaves with it.
    func together<Result>(_ sends: () -> Result) -> Result

    /// How queues stand; one that is not there is left out. It takes no right, and one exchange with the broker for each
    /// queue, in which nothing else moves on this connection: for who looks now and then.
    func depths(of queues: [String]) async throws(AMQPError) -> [String: AMQPQueueDepth]
}

extension AMQPTransport {
    /// Leaves a body to be written at once.
    package func send(
        _ body: [UInt8], on route: AMQPRoute, whenConfirmed: (@Sendable (PublishOutcome) -> Void)? = nil
    ) throws(AMQPError) {
        try send(body, on: route, patience: .zero, whenConfirmed: whenConfirmed)
    }
}
