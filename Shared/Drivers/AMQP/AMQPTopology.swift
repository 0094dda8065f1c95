/// The queues and bindings that a client declares at each connect, so that an empty broker is restored.
package struct AMQPTopology: Sendable {
    package var queues: [AMQPQueue]
    package var bindings: [AMQPBinding]

    package init(queues: [AMQPQueue] = [], bindings: [AMQPBinding] = []) {
        self.queues = queues
        self.bindings = bindings
    }

    /// New names of the exclusive queues, which end with this text, by their names here.
    func exclusiveNames(endingWith suffix: String) -> [String: String] {
        Dictionary(uniqueKeysWithValues: queues.filter(\.exclusive).map { ($0.name, $0.name + suffix) })
    }

    /// The same with new names for these queues.
    func renaming(_ names: [String: String]) -> AMQPTopology {
        var renamed = self
        for index in queues.indices { renamed.queues[index].name = names[queues[index].name] ?? queues[index].name }
        for index in bindings.indices {
            renamed.bindings[index].queue = names[bindings[index].queue] ?? bindings[index].queue
        }
        return renamed
    }
}

/// How the broker keeps a durable queue (RabbitMQ: queue types).
package enum AMQPQueueType: String, Sendable, CaseIterable {
    /// On one node. The fastest, and a single broker needs no more.
    case classic
    /// On several nodes of a cluster, by Raft. It survives the loss of a node.
    case quorum
}

/// A queue to declare (AMQP 0-9-1, queue.declare).
///
/// An exclusive queue ends with its connection. A client of a cluster appends a new text to its name at each connect,
/// because a cluster that has lost the queue's node refuses the old name.
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

/// The target of a message and its properties. Waiting bodies of one route are written as one message.
package struct AMQPRoute: Hashable, Sendable {
    /// Empty: the default exchange, whose routing key is a queue's name.
    package var exchange: String
    package var routingKey: String
    /// The longest time in a queue; nil for no limit.
    package var expiration: Duration?
    package var isPersistent: Bool
    /// The broker returns the message if no queue accepts it (`onReturned`).
    package var isMandatory: Bool
    /// The address for the consumer's reply; nil: no reply is expected.
    package var replyTo: String?

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
