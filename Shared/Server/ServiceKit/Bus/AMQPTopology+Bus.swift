package import AMQP
import BusMessages

extension AMQPTopology {
    /// The command queues that a process consumes. It declares them on each connect, so an empty broker is restored.
    /// Exchanges and durable queues are in the broker's definitions; no process may declare or delete them (SEC10).
    static func commands(_ queues: [CommandQueue]) -> AMQPTopology {
        AMQPTopology(
            queues: queues.map(AMQPQueue.commands),
            bindings: queues.map { AMQPBinding(queue: $0.rawValue, exchange: $0.exchange, routingKey: "") })
    }

    /// The exclusive queue for the notices to a gateway.
    package static func notices(gatewayID: String) -> AMQPTopology {
        let queue = Topology.noticesQueue(gatewayID: gatewayID)
        return ofThisProcess(queue, exchange: Topology.noticesExchange, routingKey: gatewayID).adding(
            AMQPTopology(
                bindings: [AMQPBinding(queue: queue, exchange: Topology.everyGatewayExchange, routingKey: "")]))
    }

    /// The exclusive queue for announcements of control data changes.
    package static func controlChanges(processID: String) -> AMQPTopology {
        ofThisProcess(
            Topology.controlChangesQueue(processID: processID), exchange: Topology.controlChangesExchange,
            routingKey: "")
    }

    /// The exclusive queue on which a console receives process reports.
    static func reports(processID: String) -> AMQPTopology {
        ofThisProcess(
            Topology.reportsQueue(processID: processID), exchange: Topology.reportsExchange, routingKey: "")
    }

    /// The exclusive queue for the replies of one tier.
    static func answers(_ exchange: AnswerExchange, key: String) -> AMQPTopology {
        ofThisProcess(exchange.queue(key: key), exchange: exchange.rawValue, routingKey: key)
    }

    private static func ofThisProcess(_ queue: String, exchange: String, routingKey: String) -> AMQPTopology {
        AMQPTopology(
            queues: [
                AMQPQueue(
                    name: queue, durable: false, exclusive: true, autoDelete: true, maxLength: nil)
            ], bindings: [AMQPBinding(queue: queue, exchange: exchange, routingKey: routingKey)])
    }

    /// Both topologies together.
    package func adding(_ other: AMQPTopology) -> AMQPTopology {
        AMQPTopology(queues: queues + other.queues, bindings: bindings + other.bindings)
    }
}

extension AMQPQueue {
    /// Durable, because RabbitMQ 4 deprecates queues that are neither durable nor exclusive. The commands are
    /// transient: the broker writes none to disk, and its restart drops them.
    fileprivate static func commands(_ queue: CommandQueue) -> AMQPQueue {
        AMQPQueue(
            name: queue.rawValue, durable: true, exclusive: false, autoDelete: false, maxLength: queue.maxBodies)
    }
}

extension AMQPRoute {
    /// To a command queue.
    ///
    /// - Parameter replyTo: the routing key of the reply, on the exchange `queue.answers`.
    static func command(_ queue: CommandQueue, replyTo: String?) -> AMQPRoute {
        AMQPRoute(
            exchange: queue.exchange, routingKey: "", expiration: queue.timeout, isPersistent: false,
            isMandatory: true, replyTo: replyTo)
    }

    /// To the sender of the command.
    static func answer(to key: String, through exchange: AnswerExchange) -> AMQPRoute {
        AMQPRoute(
            exchange: exchange.rawValue, routingKey: key, expiration: nil, isPersistent: false,
            isMandatory: false, replyTo: nil)
    }

    static func notices(_ gatewayID: String, replyTo: String? = nil) -> AMQPRoute {
        AMQPRoute(
            exchange: Topology.noticesExchange, routingKey: gatewayID, expiration: nil, isPersistent: false,
            isMandatory: false, replyTo: replyTo)
    }

    static let everyGateway = AMQPRoute(
        exchange: Topology.everyGatewayExchange, routingKey: "", expiration: nil, isPersistent: false,
        isMandatory: false, replyTo: nil)

    static let controlChanges = AMQPRoute(
        exchange: Topology.controlChangesExchange, routingKey: "", expiration: nil, isPersistent: false,
        isMandatory: false, replyTo: nil)

    static let reports = AMQPRoute(
        exchange: Topology.reportsExchange, routingKey: "", expiration: ProcessReportTable.lifetime,
        isPersistent: false, isMandatory: false, replyTo: nil)

    /// Mandatory, because the broker confirms a message that reaches no queue.
    static let probe = AMQPRoute(
        exchange: Topology.exchange(to: Topology.probeQueue), routingKey: "", expiration: nil, isPersistent: false,
        isMandatory: true, replyTo: nil)

    static let facts = AMQPRoute(
        exchange: Topology.exchange(to: Topology.factsQueue), routingKey: "", expiration: nil, isPersistent: true,
        isMandatory: true, replyTo: nil)
}
