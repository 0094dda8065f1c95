import AMQP
import BusMessages

/// A broker in memory: exchanges that route by equal keys, queues with competing consumers, prefetch, redelivery,
/// expiration, length limits and publisher confirms. Only durable queues and persistent messages survive a restart.
final class SimulatedBroker {
    fileprivate struct Message {
        let body: [UInt8]
        let route: AMQPRoute
        let replyTo: String?
        let publishedAt: Duration
        var isRedelivered = false
    }

    fileprivate final class Queue {
        let declaration: AMQPQueue
        var owner: SimulatedConnection?
        var ready: [Message] = []
        var consumers: [SimulatedConnection] = []

        init(_ declaration: AMQPQueue) { self.declaration = declaration }
    }

    let simulation: Simulation
    private var queues: [String: Queue] = [:]
    private var bindings: [String: [(key: String, queue: String)]] = [:]
    private var connections: [SimulatedConnection] = []
    private(set) var isUp = true
    /// The probability that a message to a process's own queue is lost, as when the queue ends with its connection.
    var noticeLoss = 0.0

    init(_ simulation: Simulation) {
        self.simulation = simulation
        define()
    }

    /// Declares the durable queues of the broker's definitions.
    private func define() {
        let facts = AMQPQueue(
            name: Topology.factsQueue, durable: true, exclusive: false, autoDelete: false, maxLength: nil)
        queues[facts.name] = queues[facts.name] ?? Queue(facts)
        bindings[Topology.exchange(to: facts.name)] = [("", facts.name)]
    }

    // MARK: Faults

    /// Stops the broker. Durable queues and persistent messages survive unless the disk is lost.
    func stop(losesDisk: Bool) {
        isUp = false
        for connection in connections { connection.fall() }
        connections = []
        bindings = [:]
        if losesDisk {
            queues = [:]
        } else {
            queues = queues.filter { $0.value.declaration.durable }
            for queue in queues.values { queue.ready.removeAll { !$0.route.isPersistent } }
        }
    }

    func start() {
        define()
        isUp = true
    }

    /// Deletes a queue, as an operator does. The connections of its consumers end.
    func delete(_ queue: String) {
        guard let gone = queues.removeValue(forKey: queue) else { return }
        for exchange in bindings.keys { bindings[exchange]?.removeAll { $0.queue == queue } }
        for consumer in gone.consumers { consumer.fall() }
    }

    // MARK: Connections

    fileprivate func connect(_ connection: SimulatedConnection) {
        connections.append(connection)
        for declaration in connection.topology.queues {
            let queue = queues[declaration.name] ?? Queue(declaration)
            if declaration.exclusive { queue.owner = connection }
            queues[declaration.name] = queue
        }
        for binding in connection.topology.bindings {
            bindings[binding.exchange, default: []].removeAll {
                $0.key == binding.routingKey && $0.queue == binding.queue
            }
            bindings[binding.exchange, default: []].append((binding.routingKey, binding.queue))
        }
        for consumption in connection.consumptions {
            guard let queue = queues[consumption.queue] else { continue }
            queue.consumers.append(connection)
            deliver(queue)
        }
    }

    fileprivate func disconnect(_ connection: SimulatedConnection, inHand: [(queue: String, message: [Message])]) {
        connections.removeAll { $0 === connection }
        for queue in queues.values { queue.consumers.removeAll { $0 === connection } }
        for (name, queue) in queues where queue.owner === connection {
            queues[name] = nil
            for exchange in bindings.keys { bindings[exchange]?.removeAll { $0.queue == name } }
        }
        for (name, messages) in inHand {
            guard let queue = queues[name] else { continue }
            queue.ready =
                messages.map { message in
                    var message = message
                    message.isRedelivered = true
                    return message
                } + queue.ready
            deliver(queue)
        }
    }

    // MARK: Messages

    /// Routes a message. Returns false when no queue accepts it.
    fileprivate func publish(_ body: [UInt8], on route: AMQPRoute) -> Bool {
        var isTaken = false
        for binding in bindings[route.exchange] ?? [] where binding.key == route.routingKey {
            guard let queue = queues[binding.queue] else { continue }
            if let most = queue.declaration.maxLength, queue.ready.count >= most { continue }
            isTaken = true
            if queue.declaration.exclusive, simulation.happens(noticeLoss) { continue }
            queue.ready.append(
                Message(body: body, route: route, replyTo: route.replyTo, publishedAt: simulation.elapsed))
            deliver(queue)
        }
        return isTaken
    }

    fileprivate func deliver(_ queue: Queue) {
        var index = 0
        while index < queue.consumers.count, !queue.ready.isEmpty {
            let consumer = queue.consumers[index]
            guard consumer.mayTake(from: queue.declaration.name) else {
                index += 1
                continue
            }
            let message = queue.ready.removeFirst()
            if let expiration = message.route.expiration, message.publishedAt + expiration < simulation.elapsed {
                continue
            }
            consumer.arrive(message, from: queue.declaration.name)
            // The next message goes to another consumer.
            queue.consumers.append(queue.consumers.remove(at: index))
        }
    }

    fileprivate func deliver(_ name: String) { queues[name].map(deliver) }

    /// The number of messages that wait in a queue.
    func depth(of queue: String) -> Int { queues[queue]?.ready.count ?? 0 }
}

/// One process's connection to the simulated broker, and the network between them: data arrives later, in order.
// Unchecked: see Simulation.
final class SimulatedConnection: AMQPTransport, @unchecked Sendable {
    private struct InHand {
        let queue: String
        let message: SimulatedBroker.Message
    }

    let broker: SimulatedBroker
    let topology: AMQPTopology
    let consumptions: [AMQPConsumption]
    private let events: AMQPEvents
    private let simulation: Simulation
    private let process: SimulatedProcess
    private(set) var isUp = false
    private var generation: UInt64 = 0
    private var lastTag: UInt64 = 0
    private var inHand: [UInt64: InHand] = [:]
    private var confirms: [UInt64: @Sendable (PublishOutcome) -> Void] = [:]
    private var lastConfirm: UInt64 = 0
    /// The arrival times of the data that was written last, to the broker and to the process.
    private var outUntil = Duration.zero
    private var inUntil = Duration.zero

    init(
        broker: SimulatedBroker, topology: AMQPTopology, consumptions: [AMQPConsumption],
        events: AMQPEvents, process: SimulatedProcess
    ) {
        self.broker = broker
        self.topology = topology
        self.consumptions = consumptions
        self.events = events
        self.process = process
        simulation = broker.simulation
        connectSoon()
    }

    private func connectSoon() {
        simulation.after(simulation.pick(.milliseconds(2), .milliseconds(400))) { [weak self] in
            guard let self, !isUp, process.isAlive else { return }
            guard broker.isUp else { return connectSoon() }
            isUp = true
            generation += 1
            broker.connect(self)
            process.perform { [self] in events.onConnected() }
        }
    }

    /// Ends the connection at both sides. Unacknowledged messages return to their queues.
    func fall() {
        guard isUp else { return }
        isUp = false
        let returned = inHand.sorted { $0.key < $1.key }
        inHand = [:]
        var queues: [(queue: String, message: [SimulatedBroker.Message])] = []
        for (_, one) in returned {
            if let index = queues.firstIndex(where: { $0.queue == one.queue }) {
                queues[index].message.append(one.message)
            } else {
                queues.append((one.queue, [one.message]))
            }
        }
        broker.disconnect(self, inHand: queues)
        let unconfirmed = confirms.sorted { $0.key < $1.key }.map(\.value)
        confirms = [:]
        let notify = { [self] in
            for confirm in unconfirmed { confirm(.unknown) }
            events.onDisconnected()
        }
        // A dead process also ends its waiting calls; nothing that it does has an effect.
        process.isAlive ? process.perform(notify) : notify()
        if process.isAlive { connectSoon() }
    }

    // MARK: The process's side

    func run() async throws {}

    var isConnected: Bool { isUp && process.isAlive }

    func send(
        _ body: [UInt8], on route: AMQPRoute, batchingDelay: Duration,
        whenConfirmed: (@Sendable (PublishOutcome) -> Void)?
    ) throws(AMQPError) {
        guard isConnected else { throw AMQPError(code: .disconnected, message: "the broker is unavailable") }
        var confirm: UInt64?
        if let whenConfirmed {
            lastConfirm += 1
            confirms[lastConfirm] = whenConfirmed
            confirm = lastConfirm
        }
        toBroker(batchingDelay: batchingDelay) { [self] in
            let isTaken = broker.publish(body, on: route)
            if !isTaken, route.isMandatory { toProcess { [self] in events.onReturned(route, body) } }
            guard let confirm else { return }
            toProcess { [self] in confirms.removeValue(forKey: confirm)?(isTaken ? .confirmed : .refused) }
        }
    }

    func acknowledge(_ deliveries: [AMQPDelivery], as settlement: AMQPSettlement) {
        guard isConnected else { return }
        let tags = deliveries.filter { $0.generation == generation }.map(\.deliveryTag)
        toBroker(batchingDelay: .zero) { [self] in
            for tag in tags {
                guard let settled = inHand.removeValue(forKey: tag) else { continue }
                broker.deliver(settled.queue)
            }
        }
    }

    func batched<Result>(_ sends: () -> Result) -> Result { sends() }

    func depths(of queues: [String]) async throws(AMQPError) -> [String: AMQPQueueDepth] { [:] }

    // MARK: The broker's side

    func mayTake(from queue: String) -> Bool {
        guard let consumption = consumptions.first(where: { $0.queue == queue }) else { return false }
        guard let prefetch = consumption.prefetch else { return true }
        return inHand.count(where: { $0.value.queue == queue }) < Int(prefetch)
    }

    fileprivate func arrive(_ message: SimulatedBroker.Message, from queue: String) {
        guard let consumption = consumptions.first(where: { $0.queue == queue }) else { return }
        lastTag += 1
        let tag = lastTag
        if consumption.prefetch != nil { inHand[tag] = InHand(queue: queue, message: message) }
        let generation = generation
        toProcess { [self] in
            consumption.handler([
                AMQPDelivery(
                    body: message.body, isRedelivered: message.isRedelivered, replyTo: message.replyTo,
                    receivedAt: simulation.now, exchange: message.route.exchange, generation: generation,
                    deliveryTag: tag)
            ])
        }
    }

    // MARK: The way

    /// Delays the data that the process sends from now on.
    func hold(for duration: Duration) { outUntil = max(outUntil, simulation.elapsed + duration) }

    private func toBroker(batchingDelay: Duration, _ arrive: @escaping () -> Void) {
        outUntil = max(
            outUntil, simulation.elapsed + batchingDelay + simulation.pick(.microseconds(100), .milliseconds(3)))
        let generation = generation
        simulation.after(outUntil - simulation.elapsed) { [weak self] in
            guard let self, isUp, self.generation == generation else { return }
            arrive()
        }
    }

    private func toProcess(_ arrive: @escaping () -> Void) {
        inUntil = max(inUntil, simulation.elapsed + simulation.pick(.microseconds(100), .milliseconds(3)))
        let generation = generation
        simulation.after(inUntil - simulation.elapsed) { [weak self] in
            guard let self, isUp, self.generation == generation else { return }
            process.perform(arrive)
        }
    }
}
