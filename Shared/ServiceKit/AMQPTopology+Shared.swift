package import AMQP
import BusMessages

extension AMQPTopology {
    /// What every process declares when it connects, so that an empty broker heals by itself (design §3).
    static let shared = AMQPTopology(
        exchanges: [
            AMQPExchange(name: Topology.noticesExchange, kind: .direct, durable: true, autoDelete: false),
            AMQPExchange(name: Topology.controlChangesExchange, kind: .fanout, durable: true, autoDelete: false),
        ],
        queues: CommandQueue.allCases.map(AMQPQueue.commands) + [
            AMQPQueue(
                name: Topology.deadFactsQueue, durable: true, exclusive: false, autoDelete: false, maxLength: nil,
                messageTTL: nil, deadLetterExchange: nil, deadLetterRoutingKey: nil),
            AMQPQueue(
                name: Topology.factsQueue, durable: true, exclusive: false, autoDelete: false, maxLength: 1_000_000,
                messageTTL: nil, deadLetterExchange: "", deadLetterRoutingKey: Topology.deadFactsQueue),
        ], bindings: [])

    /// The exclusive queue on which a gateway gets its notices.
    package static func notices(gatewayID: String) -> AMQPTopology {
        let name = Topology.noticesQueue(gatewayID: gatewayID)
        return AMQPTopology(
            queues: [.ofThisProcess(name)],
            bindings: [AMQPBinding(queue: name, exchange: Topology.noticesExchange, routingKey: gatewayID)])
    }

    /// The exclusive queue on which a process hears of control changes.
    package static func controlChanges(processID: String) -> AMQPTopology {
        let name = Topology.controlChangesQueue(processID: processID)
        return AMQPTopology(
            queues: [.ofThisProcess(name)],
            bindings: [AMQPBinding(queue: name, exchange: Topology.controlChangesExchange, routingKey: "")])
    }

    /// Both topologies together.
    package func adding(_ other: AMQPTopology) -> AMQPTopology {
        AMQPTopology(
            exchanges: exchanges + other.exchanges, queues: queues + other.queues, bindings: bindings + other.bindings)
    }
}

extension AMQPQueue {
    fileprivate static func commands(_ queue: CommandQueue) -> AMQPQueue {
        AMQPQueue(
            name: queue.rawValue, durable: false, exclusive: false, autoDelete: false, maxLength: queue.maxBodies,
            messageTTL: nil, deadLetterExchange: nil, deadLetterRoutingKey: nil)
    }

    fileprivate static func ofThisProcess(_ name: String) -> AMQPQueue {
        AMQPQueue(
            name: name, durable: false, exclusive: true, autoDelete: true, maxLength: nil, messageTTL: nil,
            deadLetterExchange: nil, deadLetterRoutingKey: nil)
    }
}

extension AMQPRoute {
    static func command(_ queue: CommandQueue) -> AMQPRoute {
        AMQPRoute(
            exchange: "", routingKey: queue.rawValue, expiration: queue.timeout, isPersistent: false,
            isMandatory: true, wantsReply: true)
    }

    static func notices(_ gatewayID: String, wantsReply: Bool = false) -> AMQPRoute {
        AMQPRoute(
            exchange: Topology.noticesExchange, routingKey: gatewayID, expiration: nil, isPersistent: false,
            isMandatory: false, wantsReply: wantsReply)
    }

    static let controlChanges = AMQPRoute(
        exchange: Topology.controlChangesExchange, routingKey: "", expiration: nil, isPersistent: false,
        isMandatory: false, wantsReply: false)

    static let facts = AMQPRoute(
        exchange: "", routingKey: Topology.factsQueue, expiration: nil, isPersistent: true, isMandatory: true,
        wantsReply: false)
}
