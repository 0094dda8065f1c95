import BusMessages
import Foundation
import Logging
import ServiceKit
import Synchronization
import TestSupport
import Testing

@testable import AMQP

@Suite("Rights of the tiers at the broker", .enabled(if: TestBroker.port != nil, "needs MSS_TEST_AMQP_PORT"))
struct BrokerRightsTests {
    @Test(
        "SEC10: each tier tries to publish, consume, declare and bind everywhere; only granted rights work")
    func matrix() async throws {
        try await OwnBroker.with { broker in
            try Self.checkRows()
            // This makes hundreds of blocking connections.
            try await OwnThread.run {
                for tier in BusTier.allCases.map(\.rawValue) {
                    try Self.triesExchanges(of: broker, as: tier)
                    try Self.triesQueues(of: broker, as: tier)
                    try Self.triesBindings(of: broker, as: tier)
                }
            }
        }
    }

    @Test("SEC10: a broker with our definitions has no default account, and refuses a wrong password")
    func accounts() async throws {
        try await OwnBroker.with { broker in
            for (user, password) in [("guest", "guest"), ("mss", ""), ("writer", "guess"), ("writer", "test")] {
                let isLet = try broker.lets(user, password: password) { _ throws(AMQPError) in }
                #expect(isLet == (user == "writer" && password == "test"), "\(user) \(password)")
            }
        }
    }

    @Test("SEC10: a command that a console sends through an exchange of its own is rejected")
    func foreignExchange() async throws {
        try await OwnBroker.with { broker in
            let bodies = Mutex<[String]>([])
            let writer = MessageBus(
                configuration: AMQPConfiguration(
                    host: "127.0.0.1", port: broker.port, user: "writer", password: "test"),
                consumptions: [
                    AMQPConsumption(queue: CommandQueue.fetch.rawValue, prefetch: 10) { deliveries in
                        bodies.withLock { $0 += deliveries.map(\.exchange) }
                    }
                ], answers: [], logger: Logger(label: "test"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await writer.run() }
                try await eventually("a connection", within: .seconds(30)) { writer.isConnected }
                let own = Topology.reportsQueue(processID: "x")
                let isLet = try broker.lets("console") { connection throws(AMQPError) in
                    try OwnBroker.declare(own, on: connection)
                    try connection.declare(
                        AMQPTopology(bindings: [
                            AMQPBinding(queue: CommandQueue.fetch.rawValue, exchange: own, routingKey: "nobody")
                        ]))
                    try OwnBroker.publish(to: own, on: connection)
                }
                #expect(isLet, "the broker itself permits it")
                let honest = try broker.lets("gateway") { connection throws(AMQPError) in
                    try OwnBroker.publish(to: CommandQueue.fetch.exchange, key: "", on: connection)
                }
                #expect(honest)
                try await eventually("the gateway's command", within: .seconds(10)) {
                    bodies.withLock { $0 } == [CommandQueue.fetch.exchange]
                }
                group.cancelAll()
            }
        }
    }

    /// Checks that every name of the topology has a row.
    private static func checkRows() throws {
        let exchanges =
            CommandQueue.allCases.map(\.exchange) + AnswerExchange.allCases.map(\.rawValue)
            + Topology.definedQueues.map(Topology.exchange)
            + [Topology.noticesExchange, Topology.everyGatewayExchange, Topology.controlChangesExchange]
            + [Topology.reportsExchange]
        #expect(Set(BrokerRightsMatrix.publish.keys) == Set(exchanges + [""]))
        #expect(Set(BrokerRightsMatrix.bind.keys) == Set(exchanges))
        let queues =
            CommandQueue.allCases.map(\.rawValue) + AnswerExchange.allCases.map { $0.queue(key: "x") }
            + Topology.definedQueues
            + [Topology.noticesQueue(gatewayID: "x"), Topology.controlChangesQueue(processID: "x")]
            + [Topology.reportsQueue(processID: "x")]
        #expect(Set(BrokerRightsMatrix.consume.keys) == Set(queues))
    }

    private static func triesExchanges(of broker: OwnBroker, as tier: String) throws {
        for (exchange, publishers) in BrokerRightsMatrix.publish {
            let isLet = try broker.lets(tier) { connection throws(AMQPError) in
                try OwnBroker.publish(to: exchange, on: connection)
            }
            #expect(isLet == publishers.contains(tier), "\(tier) publishes to \"\(exchange)\"")
            guard !exchange.isEmpty else { continue }
            let declares = try broker.lets(tier) { connection throws(AMQPError) in
                try OwnBroker.declare(exchange, on: connection)
            }
            #expect(!declares, "\(tier) declares \(exchange)")
        }
    }

    private static func triesQueues(of broker: OwnBroker, as tier: String) throws {
        for (queue, consumers) in BrokerRightsMatrix.consume {
            let isLet = try broker.lets(tier) { connection throws(AMQPError) in
                try connection.consume([AMQPConsumption(queue: queue, prefetch: 1) { _ in }])
            }
            #expect(isLet == consumers.contains(tier), "\(tier) consumes from \(queue)")
        }
        for (queue, owners) in BrokerRightsMatrix.configure {
            let isLet = try broker.lets(tier) { connection throws(AMQPError) in
                try connection.declare(AMQPTopology(queues: [Self.queue(queue)]))
            }
            #expect(isLet == owners.contains(tier), "\(tier) declares \(queue)")
        }
    }

    private static func triesBindings(of broker: OwnBroker, as tier: String) throws {
        // A binding needs rights to both ends. Each end is tried with another end to which the tier has rights, if any.
        let own = BrokerRightsMatrix.configure.filter { $0.value.contains(tier) }.keys.sorted().first ?? "mss.facts"
        let heard = BrokerRightsMatrix.bind.filter { $0.value.contains(tier) }.keys.sorted().first ?? "mss.notices"
        func binds(_ queue: String, to exchange: String) throws -> Bool {
            try broker.lets(tier) { connection throws(AMQPError) in
                try connection.declare(
                    AMQPTopology(bindings: [AMQPBinding(queue: queue, exchange: exchange, routingKey: "x")]))
            }
        }
        for (exchange, listeners) in BrokerRightsMatrix.bind {
            #expect(try binds(own, to: exchange) == listeners.contains(tier), "\(tier) listens to \(exchange)")
        }
        for (queue, owners) in BrokerRightsMatrix.fill {
            #expect(try binds(queue, to: heard) == owners.contains(tier), "\(tier) fills \(queue) from \(heard)")
        }
    }

    private static func queue(_ name: String) -> AMQPQueue {
        AMQPQueue(
            name: name, durable: true, exclusive: false, autoDelete: false, maxLength: nil)
    }
}
