/// The kinds of processes at the broker. Each is a user with minimal rights (SEC10). Raw values are the user names.
package enum BusTier: String, Sendable, CaseIterable {
    case ingest, writer, gateway, validator, statistics, console, notifier, relay, tool

    /// The command queues to which it sends.
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

    /// Further exchanges to which it publishes.
    private var publishes: [String] {
        let (facts, reports) = (Topology.exchange(to: Topology.factsQueue), Topology.reportsExchange)
        return switch self {
        case .writer:
            [AnswerExchange.stored.rawValue, Topology.noticesExchange, Topology.controlChangesExchange, reports]
        case .gateway: [AnswerExchange.taken.rawValue, facts, reports]
        case .validator: [AnswerExchange.verdicts.rawValue, Topology.everyGatewayExchange, reports]
        case .relay: [AnswerExchange.relayed.rawValue, reports]
        case .ingest, .statistics, .console, .notifier: [reports]
        case .tool: []
        }
    }

    /// The exchanges of the replies to its commands.
    private var answers: [String] {
        let used = Set(sends.map(\.answers))
        return AnswerExchange.allCases.filter(used.contains).map(\.rawValue)
    }

    /// Exchanges to which it binds exclusive queues. The queues are named after the exchanges.
    private var listens: [String] {
        switch self {
        case .ingest, .validator, .relay: [Topology.controlChangesExchange] + answers
        case .gateway: [Topology.noticesExchange, Topology.controlChangesExchange] + answers
        case .writer: [AnswerExchange.taken.rawValue]
        case .console: [Topology.controlChangesExchange, Topology.reportsExchange] + answers
        case .tool: [Topology.reportsExchange] + answers
        case .statistics, .notifier: []
        }
    }

    /// Queues of other tiers whose depth it reads. From RabbitMQ 4.2.6 on this needs a right to the queue. The right to
    /// write would also let the tier bind the queue to an exchange that it may read. Consumers reject messages from
    /// such an exchange (`AMQPConsumption.exchange`).
    private var counts: [String] {
        switch self {
        case .console, .tool: Topology.sharedQueues
        case .ingest, .writer, .gateway, .validator, .statistics, .notifier, .relay: []
        }
    }

    /// Its permissions as regular expressions over names of queues and exchanges (RabbitMQ: access control).
    ///
    /// One right covers declaring and deleting, so a tier has it only for queues that it consumes. Exchanges and
    /// durable queues come with the definitions. A binding needs the right to write to the queue and to read from the
    /// exchange.
    package var permissions: (configure: String, write: String, read: String) {
        let own = consumes.map(\.rawValue).map(Self.exactly) + listens.map { Self.exactly($0 + ".") + ".+" }
        let written = sends.map(\.exchange) + publishes + counts + [Topology.exchange(to: Topology.probeQueue)]
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
