import BusMessages
import ConnectionThread
import Foundation
import Logging
import ServiceLifecycle
import Synchronization
import TestSupport
import Testing

@testable import AMQP

@Suite("AMQP driver", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct AMQPClientTests {
    private let queue = "test-\(UUID().uuidString)"

    @Test("bodies for one route arrive packed and in order, and every confirmation arrives")
    func packs() async throws {
        let broker = TestBroker(queue)
        let confirmed = Atomic<Int>(0)
        try await broker.serving { client in
            for number in 0..<5_000 {
                try client.send(Array("\(number),".utf8), on: broker.route) { outcome in
                    if outcome == .confirmed { confirmed.add(1, ordering: .relaxed) }
                }
            }
            try await eventually("5,000 confirmations", within: .seconds(10)) {
                confirmed.load(ordering: .relaxed) == 5_000
            }
            try await eventually("all bytes", within: .seconds(10)) {
                broker.received.joined().hasSuffix("4999,")
            }
        }
        #expect(broker.received.joined() == (0..<5_000).map { "\($0)," }.joined())
        #expect(broker.received.count < 2_500, "packed into fewer messages than bodies")
        #expect(broker.received.allSatisfy { $0.utf8.count <= 60_000 })
        #expect(
            broker.written == broker.received.count && broker.read == broker.received.count, "as the driver reports")
    }

    @Test("a message that no queue accepts is returned") func returns() async throws {
        let broker = TestBroker(queue)
        try await broker.serving { client in
            try client.send(Array("lost".utf8), on: TestBroker.route(to: "no-such-queue"))
            try await eventually("the return", within: .seconds(5)) { broker.returned == ["lost"] }
        }
    }

    @Test("SEC10: a delivery names its exchange") func exchanges() async throws {
        let broker = TestBroker(queue, behind: "amq.direct")
        try await broker.serving { client in
            var route = broker.route
            try client.send([65], on: route)
            route.exchange = "amq.direct"
            try client.send([66], on: route)
            try await eventually("both", within: .seconds(5)) { broker.exchanges == ["", "amq.direct"] }
        }
    }

    @Test("an unacknowledged delivery goes to the next consumer, marked as redelivered")
    func redelivers() async throws {
        let first = TestBroker(queue, settlement: nil)
        try await first.serving(drainLimit: .milliseconds(50)) { client in
            try client.send(Array("a".utf8), on: first.route)
            try await eventually("the delivery", within: .seconds(5)) { first.received == ["a"] }
        }
        let second = TestBroker(queue)
        try await second.serving { _ in
            try await eventually("the redelivery", within: .seconds(5)) { second.redelivered == ["a"] }
        }
        let third = TestBroker(queue)
        try await third.serving { client in
            try client.send(Array("b".utf8), on: third.route)
            try await eventually("only the new one", within: .seconds(5)) { third.received == ["b"] }
        }
    }

    @Test("a connection that the broker closes is opened again, and later messages arrive")
    func reconnects() async throws {
        let broker = TestBroker(queue)
        try await broker.serving { client in
            try client.send(Array("before".utf8), on: broker.route)
            try await eventually("the first delivery", within: .seconds(5)) { broker.received == ["before"] }
            // A route to an unknown exchange: the broker closes the channel (AMQP 0-9-1, 404).
            var wrong = broker.route
            wrong.exchange = "no-such-exchange"
            try client.send(Array("wrong".utf8), on: wrong)
            try await eventually("a second connection", within: .seconds(10)) { broker.connections == 2 }
            try client.send(Array("after".utf8), on: broker.route)
            try await eventually("the second delivery", within: .seconds(5)) {
                broker.received == ["before", "after"]
            }
        }
    }

    @Test("a queue that is deleted under its consumer is declared again, and later messages arrive")
    func deletedQueue() async throws {
        let broker = TestBroker(queue)
        try await broker.serving { client in
            try client.send(Array("before".utf8), on: broker.route)
            try await eventually("the first delivery", within: .seconds(5)) { broker.received == ["before"] }
            try OwnBroker.delete(
                queue,
                at: AMQPConfiguration(
                    host: "127.0.0.1", port: TestBroker.port ?? 0, user: "guest", password: "guest"))
            try await eventually("a second connection", within: .seconds(10)) { broker.connections == 2 }
            try client.send(Array("after".utf8), on: broker.route)
            try await eventually("the second delivery", within: .seconds(5)) {
                broker.received == ["before", "after"]
            }
        }
    }

    @Test("a durable queue has the type of the setting, and the same queue of another type is refused")
    func queueType() throws {
        let server = AMQPConfiguration(
            host: "127.0.0.1", port: TestBroker.port ?? 0, user: "guest", password: "guest")
        let topology = AMQPTopology(queues: [
            AMQPQueue(name: queue, durable: true, exclusive: false, autoDelete: false, maxLength: 10)
        ])
        func declare(_ type: AMQPQueueType) throws {
            let watchdog = Watchdog()
            defer { watchdog.stop() }
            let connection = try AMQPConnection(server, at: server.addresses[0], generation: 1, watchdog: watchdog)
            defer { connection.close() }
            try connection.declare(topology, as: type)
        }
        try declare(.quorum)
        try declare(.quorum)
        #expect(throws: AMQPError.self) { try declare(.classic) }
        try OwnBroker.delete(queue, at: server)
    }

    // A broker without a cluster cannot lose its other nodes. It refuses probes here instead of not confirming them.
    @Test("R10: a client whose probes are not confirmed connects anew; one whose probes are confirmed stays")
    func probes() async throws {
        func connections(keeping maxLength: Int, for duration: Duration) async throws -> Int {
            let probed = "\(queue)-probe-\(maxLength)"
            var server = AMQPConfiguration(
                host: "127.0.0.1", port: TestBroker.port ?? 0, user: "guest", password: "guest")
            let broker = TestBroker("\(queue)-\(maxLength)")
            let watchdog = Watchdog()
            defer { watchdog.stop() }
            let connection = try AMQPConnection(server, at: server.addresses[0], generation: 1, watchdog: watchdog)
            try connection.declare(
                AMQPTopology(queues: [
                    AMQPQueue(name: probed, durable: true, exclusive: false, autoDelete: false, maxLength: maxLength)
                ]))
            connection.close()
            server.probe = TestBroker.route(to: probed)
            try await broker.serving(at: server) { _ in
                let start = ContinuousClock.now
                try await eventually("the end", within: .seconds(20)) { start.duration(to: .now) > duration }
            }
            try OwnBroker.delete(probed, at: server)
            return broker.connections
        }
        // The first connection ends after 1 s, the second one after 2 s, and the third one lasts for 3.2 s.
        async let refused = connections(keeping: 0, for: .seconds(5))
        async let confirmed = connections(keeping: 1_000, for: .seconds(5))
        #expect(try await refused == 3)
        #expect(try await confirmed == 1)
    }

    @Test("in a cluster a new connection gets a queue of its own while an earlier connection is still held")
    func heldQueue() async throws {
        let node = ServerAddress(host: "127.0.0.1", port: TestBroker.port ?? 0)
        let exclusive = "\(queue)-own"
        let topology = AMQPTopology(
            queues: [AMQPQueue(name: exclusive, durable: false, exclusive: true, autoDelete: true, maxLength: nil)],
            bindings: [AMQPBinding(queue: exclusive, exchange: "amq.direct", routingKey: queue)])
        let received = Mutex([0, 0])
        let clients = (0..<2).map { number in
            AMQPClient(
                configuration: AMQPConfiguration(addresses: [node, node], user: "guest", password: "guest"),
                topology: topology,
                consumptions: [
                    AMQPConsumption(queue: exclusive, prefetch: nil) { deliveries in
                        received.withLock { $0[number] += deliveries.count }
                    }
                ], events: TestBroker(queue).events, logger: Logger(label: "test"))
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in clients { group.addTask { try await client.run() } }
            try await eventually("two connections", within: .seconds(5)) { clients.allSatisfy(\.isConnected) }
            let route = AMQPRoute(
                exchange: "amq.direct", routingKey: queue, expiration: nil, isPersistent: false, isMandatory: false,
                replyTo: nil)
            try clients[0].send([1], on: route)
            try await eventually("both queues got it", within: .seconds(5)) { received.withLock { $0 } == [1, 1] }
            group.cancelAll()
        }
    }

    @Test("a client takes the next address when a node does not answer") func nextAddress() async throws {
        let broker = TestBroker(queue)
        let dead = ServerAddress(host: "127.0.0.1", port: 1)
        let node = ServerAddress(host: "127.0.0.1", port: TestBroker.port ?? 0)
        for _ in 0..<4 {
            let server = AMQPConfiguration(addresses: [dead, node, dead], user: "guest", password: "guest")
            try await broker.serving(at: server) { client in #expect(client.isConnected) }
        }
        #expect(broker.connections == 4)
    }

    @Test("while the broker blocks, send refuses at once, and continues afterwards on the same connection")
    func alarm() async throws {
        try await OwnBroker.with { server in
            let connections = TestBroker(queue)
            let client = AMQPClient(
                configuration: AMQPConfiguration(
                    host: "127.0.0.1", port: server.port, user: "writer", password: "test"),
                topology: AMQPTopology(), consumptions: [], events: connections.events, logger: Logger(label: "test"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                try await eventually("a connection", within: .seconds(10)) { client.isConnected }
                try await server.control("set_vm_memory_high_watermark", "absolute", "1MB")
                // The broker reports its alarm only to a connection that has published.
                let route = AMQPRoute(
                    exchange: AnswerExchange.stored.rawValue, routingKey: "nobody", expiration: nil,
                    isPersistent: false, isMandatory: true, replyTo: nil)
                try client.send([1], on: route)
                try await eventually("the refusal", within: .seconds(10)) { !client.isConnected }
                #expect(throws: AMQPError.self) { try client.send([2], on: route) }
                try await server.control("set_vm_memory_high_watermark", "0.6")
                try await eventually("the end of the alarm", within: .seconds(10)) { client.isConnected }
                try client.send([3], on: route)
                try await eventually("both returns", within: .seconds(10)) {
                    connections.returned == ["\u{1}", "\u{3}"]
                }
                group.cancelAll()
            }
            #expect(connections.connections == 1)
        }
    }

    /// Keeps the reasons that a client logs for the end of a connection.
    private struct ReasonLog: LogHandler {
        let record: @Sendable (String) -> Void
        var metadata = Logger.Metadata()
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.MetadataValue? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            if let reason = event.metadata?["reason"] { record("\(reason)") }
        }
    }

    @Test("a broker that hangs is given up after one and a half heartbeats, before the library's limit of two")
    func silence() async throws {
        try await OwnBroker.with { server in
            var configuration = AMQPConfiguration(
                host: "127.0.0.1", port: server.port, user: "writer", password: "test")
            configuration.heartbeat = .seconds(4)
            let reasons = Mutex<[String]>([])
            let client = AMQPClient(
                configuration: configuration, topology: AMQPTopology(), consumptions: [],
                events: TestBroker(queue).events,
                logger: Logger(label: "test") { _ in ReasonLog { reason in reasons.withLock { $0.append(reason) } } })
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                try await eventually("a connection", within: .seconds(10)) { client.isConnected }
                server.signal(SIGSTOP)
                defer { server.signal(SIGCONT) }
                try await eventually("the end of the connection", within: .seconds(20)) { !client.isConnected }
                group.cancelAll()
            }
            let reason = try #require(reasons.withLock { $0.first })
            #expect(reason.hasPrefix("the broker was silent for "), "\(reason)")
        }
    }

    @Test("a full queue refuses a confirmed message at once; the connection continues") func fullQueue() async throws {
        let client = AMQPClient(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: TestBroker.port ?? 0, user: "guest", password: "guest"),
            topology: AMQPTopology(queues: [
                AMQPQueue(name: queue, durable: true, exclusive: false, autoDelete: true, maxLength: 1)
            ]), consumptions: [], events: TestBroker(queue).events, logger: Logger(label: "test"))
        let outcomes = Mutex<[PublishOutcome]>([])
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await client.run() }
            try await eventually("a connection", within: .seconds(10)) { client.isConnected }
            for number in 1...3 {
                try client.send([UInt8(number)], on: TestBroker.route(to: queue)) { outcome in
                    outcomes.withLock { $0.append(outcome) }
                }
                try await eventually("outcome \(number)", within: .seconds(5)) {
                    outcomes.withLock { $0.count } == number
                }
            }
            group.cancelAll()
        }
        #expect(outcomes.withLock { $0 } == [.confirmed, .refused, .refused])
    }

    @Test("without a broker, send refuses at once, and shutdown does not wait for a broker") func away() async throws {
        let client = AMQPClient(
            configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "guest", password: "guest"),
            topology: AMQPTopology(), consumptions: [], events: TestBroker(queue).events, logger: Logger(label: "test"))
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await client.run() }
            #expect(throws: AMQPError.self) { try client.send([1], on: TestBroker.route(to: "q")) }
            #expect(!client.isConnected)
            group.cancelAll()
        }
    }

    @Test("a client accepts a bounded number of bytes and refuses more") func bounded() async throws {
        let broker = TestBroker(queue)
        try await broker.serving(waitingBytesMax: 1_000) { client in
            #expect(throws: AMQPError.self) {
                try client.send([UInt8](repeating: 0, count: 1_001), on: broker.route)
            }
            try client.send([UInt8](repeating: 65, count: 1_000), on: broker.route)
            try await eventually("the one that fits", within: .seconds(5)) {
                broker.received.joined().utf8.count == 1_000
            }
        }
    }
}
