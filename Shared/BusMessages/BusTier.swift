/// The kinds of processes at the broker, each a user with the least rights (SEC10). Raw values are the users' names.
package enum BusTier: String, Sendable, CaseIterable {
    case ingest, writer, gateway, validator, statistics, console, notifier, relay, tool

    /// The command queues that it sends to.
    private var sends: [CommandQueue] {
        switch self {
        case .ingest: [.append, .snapshot, .operation, .admission]
        case .gateway: [.session, .lease, .fetch, .ack, .snapshot, .validate, .admission, .submit]
        case .validator: [.snapshot]
        case .relay: [.append, .snapshot]
        case .console: [.append, .snapshot, .control, .people, .validate, .relay]
        case .tool: [.snapshot, .control, .people, .validate, .relay]
        case .writer, .statistics, .notifier: []
        }
    }

    /// The command queues that it declares and consumes.
    private var consumes: [CommandQueue] { CommandQueue.allCases.filter { $0.consumer == self } }

    /// Exchanges that it publishes to beside those of its commands.
    private var publishes: [String] {
        let (facts, reports) = (Topology.exchange(to: Topology.factsQueue), Topology.reportsExchange)
        return switch self {
        // The default exchange, as the broker calls it in permissions: answers straight back.
        case .writer: ["amq.default", Topology.noticesExchange, Topology.controlChangesExchange, reports]
        case .gateway: [AnswerExchange.taken.rawValue, facts, reports]
        case .validator: [AnswerExchange.verdicts.rawValue, Topology.everyGatewayExchange, reports]
        case .relay: [AnswerExchange.relayed.rawValue, reports]
        case .ingest, .statistics, .console, .notifier: [reports]
        case .tool: []
        }
    }

    /// Exchanges to which it binds exclusive queues of its processes, which are named after them.
    private var listens: [String] {
        switch self {
        case .ingest, .validator, .relay: [Topology.controlChangesExchange]
        case .gateway:
            [Topology.noticesExchange, Topology.controlChangesExchange, AnswerExchange.verdicts.rawValue]
                + [AnswerExchange.relayed.rawValue]
        case .writer: [AnswerExchange.taken.rawValue]
        case .console:
            [Topology.controlChangesExchange, AnswerExchange.verdicts.rawValue, Topology.reportsExchange]
                + [AnswerExchange.relayed.rawValue]
        case .tool: [AnswerExchange.verdicts.rawValue, AnswerExchange.relayed.rawValue, Topology.reportsExchange]
        case .statistics, .notifier: []
        }
    }

    /// Queues of other tiers whose messages it counts. From RabbitMQ 4.2.6 on that takes a right to the queue. The right
    /// to write lets the tier bind the queue to an exchange that it reads. Consumers reject messages that come through
    /// such an exchange (`AMQPConsumption.exchange`).
    private var counts: [String] {
        switch self {
        case .console, .tool: Topology.sharedQueues
        case .ingest, .writer, .gateway, .validator, .statistics, .notifier, .relay: []
        }
    }

    /// Its permissions as regular expressions over names of queues and exchanges (RabbitMQ: access control).
    ///
    /// Declaring and deleting is one right, so each has it for the queues alone that it consumes, whose messages are
    /// in its hands anyway; exchanges and the durable queues come with the definitions. Binding takes writing to the
    /// queue and reading from the exchange.
    package var permissions: (configure: String, write: String, read: String) {
        let own = consumes.map(\.rawValue).map(Self.exactly) + listens.map { Self.exactly($0 + ".") + ".+" }
        let written = sends.map(\.exchange) + publishes + counts
        let others: [String] =
            switch self {
            case .gateway: [Topology.everyGatewayExchange]
            case .statistics: [Topology.factsQueue]
            default: []
            }
        let read = consumes.map(\.exchange) + listens + others
        return (
            Self.pattern(own), Self.pattern(own + written.map(Self.exactly)),
            Self.pattern(own + read.map(Self.exactly))
        )
    }

    private static func exactly(_ name: String) -> String { name.replacing(".", with: "\\.") }

    private static func pattern(_ names: [String]) -> String { "^(\(names.joined(separator: "|")))$" }
}
