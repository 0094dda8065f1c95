package import Foundation

/// The broker's definitions before the first process connects: a user for each tier, and the queues and exchanges that
/// no tier may declare. The form is that of RabbitMQ's `load_definitions`.
///
/// They restore a broker that lost its data. They contain the users, so processes need not declare exchanges. Command
/// queues are not included; their consumers declare them.
package struct BrokerDefinitions: Encodable {
    private struct User: Encodable {
        let name: String
        let passwordHash: String
        let hashingAlgorithm = "rabbit_password_hashing_sha256"
        let tags: [String] = []
    }

    private struct VirtualHost: Encodable {
        let name: String
    }

    private struct Permission: Encodable {
        let user: String
        let vhost: String
        let configure: String
        let write: String
        let read: String
    }

    private struct Exchange: Encodable {
        let name: String
        let vhost: String
        let type: String
        let durable = true
        let autoDelete = false
        let `internal` = false
        let arguments: [String: String] = [:]
    }

    private struct Queue: Encodable {
        let name: String
        let vhost: String
        let durable = true
        let autoDelete = false
        let arguments: [String: Argument]
    }

    private struct Binding: Encodable {
        let source: String
        let vhost: String
        let destination: String
        let destinationType = "queue"
        let routingKey = ""
        let arguments: [String: String] = [:]
    }

    private enum Argument: Encodable {
        case text(String)
        case number(Int)

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .text(let text): try container.encode(text)
            case .number(let number): try container.encode(number)
            }
        }
    }

    /// Maximum number of bodies of facts; beyond it, gateways keep their facts.
    package static let factsMax = 1_000_000
    /// Maximum bytes of facts: one hour at the highest rate, and less than a broker's disk.
    private static let factsBytesMax = 2 << 30

    private let users: [User]
    private let vhosts: [VirtualHost]
    private let permissions: [Permission]
    private let exchanges: [Exchange]
    private let queues: [Queue]
    private let bindings: [Binding]

    /// - Parameters:
    ///   - virtualHost: the same as the processes' `MSS_AMQP_VHOST`.
    ///   - passwordHashes: by tier: the Base64 text of four bytes of salt and the SHA-256 of salt and password
    ///     (RabbitMQ: passwords).
    ///   - factsMax: maximum number of bodies of facts.
    ///   - isReplicated: whether durable queues are quorum queues, which a cluster keeps on several nodes.
    package init(
        virtualHost: String, passwordHashes: [BusTier: String], factsMax: Int = factsMax, isReplicated: Bool = false
    ) {
        users = BusTier.allCases.map { User(name: $0.rawValue, passwordHash: passwordHashes[$0] ?? "") }
        vhosts = [VirtualHost(name: virtualHost)]
        permissions = BusTier.allCases.map { tier in
            let (configure, write, read) = tier.permissions
            return Permission(user: tier.rawValue, vhost: virtualHost, configure: configure, write: write, read: read)
        }
        let direct =
            CommandQueue.allCases.map(\.exchange) + Topology.definedQueues.map(Topology.exchange)
            + AnswerExchange.allCases.map(\.rawValue) + [Topology.noticesExchange]
        exchanges =
            direct.map { Exchange(name: $0, vhost: virtualHost, type: "direct") }
            + [Topology.everyGatewayExchange, Topology.controlChangesExchange, Topology.reportsExchange].map {
                Exchange(name: $0, vhost: virtualHost, type: "fanout")
            }
        let type: [String: Argument] = isReplicated ? ["x-queue-type": .text("quorum")] : [:]
        queues = [
            Queue(
                name: Topology.factsQueue, vhost: virtualHost,
                arguments: [
                    "x-max-length": .number(factsMax),
                    "x-max-length-bytes": .number(Self.factsBytesMax), "x-overflow": .text("reject-publish"),
                    "x-dead-letter-exchange": .text(Topology.exchange(to: Topology.deadFactsQueue)),
                    "x-dead-letter-routing-key": .text(""),
                ].merging(type) { $1 }), Queue(name: Topology.deadFactsQueue, vhost: virtualHost, arguments: type),
            Queue(
                name: Topology.probeQueue, vhost: virtualHost,
                arguments: ["x-max-length": .number(1), "x-queue-type": .text("quorum")]),
        ]
        bindings = Topology.definedQueues.map {
            Binding(source: Topology.exchange(to: $0), vhost: virtualHost, destination: $0)
        }
    }

    /// The file's text.
    package func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }
}
