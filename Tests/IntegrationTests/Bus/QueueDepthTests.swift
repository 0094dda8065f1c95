import BusMessages
import Foundation
import Logging
import Synchronization
import TestSupport
import Testing

@testable import AMQP
@testable import ServiceKit

@Suite("Depths of queues", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct QueueDepthTests {
    private let queue = "test-\(UUID().uuidString)"

    @Test("waiting messages are counted, messages at a consumer are not, and a missing queue is left out")
    func counts() async throws {
        let (consumed, waiting) = (TestBroker(queue, settlement: nil), "\(queue)-waiting")
        let holder = client(AMQPTopology(queues: [Self.queue(waiting)]))
        try await consumed.serving(drainLimit: .milliseconds(50)) { client in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await holder.run() }
                try await eventually("a connection", within: .seconds(10)) { holder.isConnected }
                try client.send([1], on: consumed.route)
                try await eventually("a body in hand", within: .seconds(10)) { consumed.received.count == 1 }
                // Published one after the other, because the driver would pack them into one body.
                for number in 1...3 {
                    try holder.send([1], on: TestBroker.route(to: waiting))
                    try await eventually("\(number) bodies wait", within: .seconds(10)) {
                        let depths = try await client.depths(of: ["no-such-queue", waiting, "none", queue])
                        return depths == [
                            waiting: AMQPQueueDepth(messages: number, consumers: 0),
                            queue: AMQPQueueDepth(messages: 0, consumers: 1),
                        ]
                    }
                }
                group.cancelAll()
            }
            // The same connection is still in use.
            #expect(consumed.connections == 1)
            try client.send([2], on: consumed.route)
            try await eventually("the second body", within: .seconds(10)) { consumed.received.count == 2 }
        }
    }

    @Test("a queue for which the broker refuses the count is not reported as missing, and the connection continues")
    func refused() async throws {
        let (consumed, locked) = (TestBroker(queue, settlement: nil), "\(queue)-locked")
        let exclusive = AMQPQueue(name: locked, durable: false, exclusive: true, autoDelete: true, maxLength: nil)
        let server = AMQPConfiguration(
            host: "127.0.0.1", port: TestBroker.port ?? 0, user: "guest", password: "guest")
        let watchdog = Watchdog()
        defer { watchdog.stop() }
        let holder = try AMQPConnection(server, at: server.addresses[0], generation: 1, watchdog: watchdog)
        defer { holder.close() }
        try holder.declare(AMQPTopology(queues: [exclusive]))
        try await consumed.serving(drainLimit: .milliseconds(50)) { client in
            await #expect { try await client.depths(of: [locked]) } throws: { ($0 as? AMQPError)?.code == .refused }
            let counted = try await client.depths(of: [queue]).count
            #expect(counted == 1 && consumed.connections == 1)
        }
    }

    @Test("a count while the broker is unreachable fails, also when it becomes unreachable meanwhile")
    func away() async throws {
        let client = client(AMQPTopology())
        await #expect { try await client.depths(of: ["x"]) } throws: {
            ($0 as? AMQPError)?.code == .disconnected
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            try await eventually("a connection", within: .seconds(10)) { client.isConnected }
            for _ in 0..<200 { group.addTask { _ = try? await client.depths(of: ["x"]) } }
            group.cancelAll()
            // Without a reply to each request, this would never end.
            try await group.waitForAll()
        }
    }

    @Test("SEC10: a console and the tool count messages of queues that they may not consume")
    func rights() async throws {
        try await OwnBroker.with { broker in
            let writer = Self.bus(
                .writer, at: broker,
                CommandQueue.allCases.filter { $0.consumer == .writer }.map { queue in
                    AMQPConsumption(queue: queue.rawValue, prefetch: 1) { _ in }
                })
            let console = Self.bus(.console, at: broker)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for bus in [writer, console] {
                    group.addTask { try await bus.run() }
                    try await eventually("a connection", within: .seconds(30)) { bus.isConnected }
                }
                let depths = try await console.queueDepths()
                let others = CommandQueue.allCases.filter { $0.consumer != .writer }.map(\.rawValue)
                #expect(Set(depths.keys) == Set(Topology.sharedQueues).subtracting(others))
                #expect(depths["mss.append"] == AMQPQueueDepth(messages: 0, consumers: 1))
                #expect(depths["mss.facts"] == AMQPQueueDepth(messages: 0, consumers: 0))
                group.cancelAll()
            }
            let tool = Self.bus(.tool, at: broker)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await tool.run() }
                try await eventually("a connection", within: .seconds(30)) { tool.isConnected }
                #expect(try await tool.queueDepths()["mss.facts.dead"]?.messages == 0)
                group.cancelAll()
            }
        }
    }

    @Test("R10: the broker confirms the probes of a tier, one after the other") func probes() async throws {
        try await OwnBroker.with { broker in
            var configuration = AMQPConfiguration(
                host: "127.0.0.1", port: broker.port, user: BusTier.statistics.rawValue, password: "test")
            configuration.probe = .probe
            let connects = Atomic<Int>(0)
            let returned = Atomic<Int>(0)
            let written = Atomic<Int>(0)
            let client = AMQPClient(
                configuration: configuration, topology: AMQPTopology(), consumptions: [],
                events: AMQPEvents(
                    onConnected: { connects.add(1, ordering: .relaxed) }, onDisconnected: {},
                    onReturned: { _, _ in returned.add(1, ordering: .relaxed) },
                    onTraffic: { count, _ in written.add(count, ordering: .relaxed) }),
                logger: Logger(label: "test"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                // Each probe is sent after the confirmation of the one before.
                try await eventually("eight probes", within: .seconds(30)) { written.load(ordering: .relaxed) >= 8 }
                group.cancelAll()
            }
            #expect(connects.load(ordering: .relaxed) == 1)
            #expect(returned.load(ordering: .relaxed) == 0)
        }
    }

    private static func bus(
        _ tier: BusTier, at broker: OwnBroker, _ consumptions: [AMQPConsumption] = []
    ) -> MessageBus {
        MessageBus(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: broker.port, user: tier.rawValue, password: "test"),
            consumptions: consumptions, answers: [], logger: Logger(label: "test"))
    }

    private static func queue(_ name: String) -> AMQPQueue {
        AMQPQueue(name: name, durable: true, exclusive: false, autoDelete: true, maxLength: nil)
    }

    private func client(_ topology: AMQPTopology) -> AMQPClient {
        AMQPClient(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: TestBroker.port ?? 0, user: "guest", password: "guest"),
            topology: topology, consumptions: [], events: TestBroker(queue).events, logger: Logger(label: "test"))
    }
}
