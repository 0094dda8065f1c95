package import AMQP
import BusMessages

extension AMQPTopology {
    /// What a process declares when it connects, so that a broker that came back empty is whole again: the command
    /// queues that it consumes. Exchanges and durable queues come with the broker's definitions; no process may declare
    /// or delete them (SEC10).
    static func commands(_ queues: [CommandQueue]) -> AMQPTopology {
        AMQPTopology(
            queues: queues.map(AMQPQueue.commands),
            bindings: queues.map { AMQPBinding(queue: $0.rawValue, exchange: $0.exchange, routingKey: "") })
    }

    /// The exclusive queue on which a gateway gets its notices.
    package static func notices(gatewayID: String) -> AMQPTopology {
        let queue = Topology.noticesQueue(gatewayID: gatewayID)
        return ofThisProcess(queue, exchange: Topology.noticesExchange, routingKey: gatewayID).adding(
            AMQPTopology(
                bindings: [AMQPBinding(queue: queue, exchange: Topology.everyGatewayExchange, routingKey: "")]))
    }

    /// The exclusive queue on which a process hears of control changes.
    package static func controlChanges(processID: String) -> AMQPTopology {
        ofThisProcess(
            Topology.controlChangesQueue(processID: processID), exchange: Topology.controlChangesExchange,
            routingKey: "")
    }

    /// The exclusive queue on which a console hears of processes.
    static func reports(processID: String) -> AMQPTopology {
        ofThisProcess(
            Topology.reportsQueue(processID: processID), exchange: Topology.reportsExchange, routingKey: "")
    }

    /// The exclusive queue on which a process gets answers that do not come straight back.
    static func answers(_ exchange: AnswerExchange, processID: String) -> AMQPTopology {
        ofThisProcess(exchange.queue(processID: processID), exchange: exchange.rawValue, routingKey: processID)
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
    /// Durable, because RabbitMQ 4 deprecates queues that are neither durable nor exclusive. The commands in it are
    /// transient: nothing is written for them, and a restart of the broker drops them.
    fileprivate static func commands(_ queue: CommandQueue) -> AMQPQueue {
        AMQPQueue(
            name: queue.rawValue, durable: true, exclusive: false, autoDelete: false, maxLength: queue.maxBodies)
    }
}

extension AMQPRoute {
    /// To a command queue.
    ///
    /// - Parameter replyTo: where the answer goes: this connection's direct queue, or a key of `queue.answers`.
    static func command(_ queue: CommandQueue, replyTo: String?) -> AMQPRoute {
        AMQPRoute(
            exchange: queue.exchange, routingKey: "", expiration: queue.timeout, isPersistent: false,
            isMandatory: true, replyTo: replyTo)
    }

    /// Back to whom asked.
    static func answer(to key: String, through exchange: AnswerExchange?) -> AMQPRoute {
        AMQPRoute(
            exchange: exchange?.rawValue ?? "", routingKey: key, expiration: nil, isPersistent: false,
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

    static let facts = AMQPRoute(
        exchange: Topology.exchange(to: Topology.factsQueue), routingKey: "", expiration: nil, isPersistent: true,
        isMandatory: true, replyTo: nil)
}
