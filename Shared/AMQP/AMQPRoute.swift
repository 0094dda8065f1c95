/// Where a message goes and how it travels. Bodies of one route that wait together are written as one.
package struct AMQPRoute: Hashable, Sendable {
    /// Empty: the default exchange, whose routing key is a queue's name.
    package var exchange: String
    package var routingKey: String
    /// How long it may wait in a queue; nil for as long as the queue keeps it.
    package var expiration: Duration?
    package var isPersistent: Bool
    /// A message that no queue takes comes back (`onReturned`).
    package var isMandatory: Bool
    /// Names this connection's direct reply-to queue.
    package var wantsReply: Bool

    package init(
        exchange: String, routingKey: String, expiration: Duration?, isPersistent: Bool, isMandatory: Bool,
        wantsReply: Bool
    ) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.expiration = expiration
        self.isPersistent = isPersistent
        self.isMandatory = isMandatory
        self.wantsReply = wantsReply
    }
}
