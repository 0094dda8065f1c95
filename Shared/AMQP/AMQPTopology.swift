/// What a client declares each time it connects, so that a broker that came back empty is whole again.
package struct AMQPTopology: Sendable {
    package var queues: [AMQPQueue]
    package var bindings: [AMQPBinding]

    package init(queues: [AMQPQueue] = [], bindings: [AMQPBinding] = []) {
        self.queues = queues
        self.bindings = bindings
    }
}

/// A queue to declare (AMQP 0-9-1, queue.declare).
package struct AMQPQueue: Sendable {
    package var name: String
    package var durable: Bool
    package var exclusive: Bool
    package var autoDelete: Bool
    /// Messages that may wait; the broker refuses more (overflow reject-publish).
    package var maxLength: Int?

    package init(name: String, durable: Bool, exclusive: Bool, autoDelete: Bool, maxLength: Int?) {
        self.name = name
        self.durable = durable
        self.exclusive = exclusive
        self.autoDelete = autoDelete
        self.maxLength = maxLength
    }
}

/// A binding to declare (AMQP 0-9-1, queue.bind).
package struct AMQPBinding: Sendable {
    package var queue: String
    package var exchange: String
    package var routingKey: String

    package init(queue: String, exchange: String, routingKey: String) {
        self.queue = queue
        self.exchange = exchange
        self.routingKey = routingKey
    }
}
