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
    /// Where the consumer's answer is to go; nil: none is expected.
    package var replyTo: String?

    /// The name under which a connection's own answers come straight back (RabbitMQ: direct reply-to).
    package static let straightBack = "amq.rabbitmq.reply-to"

    package init(
        exchange: String, routingKey: String, expiration: Duration?, isPersistent: Bool, isMandatory: Bool,
        replyTo: String?
    ) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.expiration = expiration
        self.isPersistent = isPersistent
        self.isMandatory = isMandatory
        self.replyTo = replyTo
    }
}
