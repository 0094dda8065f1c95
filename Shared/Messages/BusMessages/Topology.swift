import SyncModel

/// A shared queue of commands with competing consumers. A command contains the address of its reply.
package enum CommandQueue: String, Sendable, CaseIterable {
    /// Ingest, consoles and relay to oplog writer: pushes to store.
    case append = "mss.append"
    /// Gateway to oplog writer: sessions, sweeps.
    case session = "mss.session"
    /// Gateway to oplog writer: leases. Separate from `session`, where a renewal could wait behind many registrations
    /// and expire. A lost lease would then cause even more registrations.
    case lease = "mss.lease"
    /// Gateway to oplog writer: read a page of a channel.
    case fetch = "mss.fetch"
    /// Gateway to oplog writer: stored acknowledgements.
    case ack = "mss.ack"
    /// The tool and consoles to oplog writer: changes of instances, keys and configurations.
    case control = "mss.control"
    /// All processes to oplog writer: snapshots of the control data. Separate from `control`, so that the right to read
    /// it is no right to change it (SEC10).
    case snapshot = "mss.snapshot"
    /// Ingest to oplog writer: traces, dry runs, recalls and revocations of backends.
    case operation = "mss.operation"
    /// Consoles and tool to oplog writer: the same queries, and those for operators only: payloads, devices, dead
    /// letters, audit records of pushes. Separate from `operation`, so that an ingest can neither send these nor act
    /// for an operator (SEC10).
    case people = "mss.people"
    /// Ingest and gateway to oplog writer: nonces and daily quotas, which all processes share.
    case admission = "mss.admission"
    /// Gateways, and consoles that test an endpoint, to session validator: requests for verdicts.
    case validate = "mss.validate"
    /// Gateway to relay: operations of devices.
    case submit = "mss.submit"
    /// Consoles and tool to relay: queries about operations. Separate from `submit`, so that no gateway can send them.
    case relay = "mss.relay"

    /// The caller's time-out, and the TTL of a command in the queue: an older command has no use.
    package var timeout: Duration {
        switch self {
        case .append: .milliseconds(2_500)
        case .admission: .milliseconds(1_500)
        case .lease: .seconds(2)
        case .session, .fetch, .ack, .control, .snapshot, .operation, .people, .submit, .relay: .seconds(5)
        case .validate: .seconds(8)
        }
    }

    /// Maximum number of waiting bodies. The broker refuses more, so that an outage cannot fill its memory. Bodies of
    /// operations are larger.
    package var maxBodies: Int { self == .submit ? 2_000 : 10_000 }

    /// The tier that consumes the queue.
    package var consumer: BusTier {
        switch self {
        case .append, .session, .lease, .fetch, .ack, .control, .snapshot, .operation, .people, .admission: .writer
        case .validate: .validator
        case .submit, .relay: .relay
        }
    }

    /// The exchange that leads only to this queue. So the right to send commands is separate for each queue; on the
    /// default exchange it would include all queues.
    package var exchange: String { Topology.exchange(to: rawValue) }

    /// The exchange of replies.
    package var answers: AnswerExchange {
        switch consumer {
        case .validator: .verdicts
        case .relay: .relayed
        default: .stored
        }
    }
}

/// Names of other exchanges and queues.
package enum Topology {
    /// The schema version that this build writes into every envelope.
    package static let schemaVersion: UInt32 = 1
    /// Direct exchange to the gateways, keyed by gateway id.
    package static let noticesExchange = "mss.notices"
    /// Fanout to every gateway: invalid verdicts.
    package static let everyGatewayExchange = "mss.gateways"
    /// Fanout that announces new versions of the control data.
    package static let controlChangesExchange = "mss.control.changes"
    /// Fanout to every console: process reports.
    package static let reportsExchange = "mss.reports"
    /// Durable queue of facts.
    package static let factsQueue = "mss.facts"
    /// The queue for rejected facts.
    package static let deadFactsQueue = "mss.facts.dead"

    /// The queue to which clients of a cluster send probes. Nobody reads it, and it keeps one message.
    package static let probeQueue = "mss.probe"

    /// The queues in the definitions of the broker. Consumers declare the command queues.
    package static let definedQueues = [factsQueue, deadFactsQueue, probeQueue]

    /// Queues with competing consumers. A waiting body is work that no process has taken.
    package static let sharedQueues = CommandQueue.allCases.map(\.rawValue) + [factsQueue, deadFactsQueue]

    /// The direct exchange in front of a queue; its bindings have the empty key.
    package static func exchange(to queue: String) -> String { "mss.to." + queue.dropFirst("mss.".count) }

    /// The exclusive queue of one gateway.
    package static func noticesQueue(gatewayID: String) -> String { "mss.notices.\(gatewayID)" }
    /// The exclusive queue on which one process receives announcements of control data changes.
    package static func controlChangesQueue(processID: String) -> String { "mss.control.changes.\(processID)" }
    /// The exclusive queue on which one console receives process reports.
    package static func reportsQueue(processID: String) -> String { "\(reportsExchange).\(processID)" }
}

/// A direct exchange for the replies of one tier; a routing key leads to a requesting process.
///
/// RabbitMQ's direct reply-to would be shorter. But it needs the right to publish to the default exchange, and so to
/// every queue (SEC10). And RabbitMQ 3.10 ends the connection of a process that replies to a caller on a node that the
/// cluster does not see.
package enum AnswerExchange: String, Sendable, CaseIterable {
    /// From oplog writers to all processes that send them commands.
    case stored = "mss.stored"
    /// From session validators to gateways, consoles and the tool.
    case verdicts = "mss.verdicts"
    /// From relays to gateways, consoles and the tool.
    case relayed = "mss.relayed"
    /// From gateways to oplog writers: which entries of a notice were sent or kept.
    case taken = "mss.taken"

    /// The exclusive queue of a requesting process.
    ///
    /// - Parameter key: the routing key of the replies, which is secret: a tier that knows it can copy them. So a process
    ///   has another key for each exchange, and no tier learns the key of another tier's replies (SEC10).
    package func queue(key: String) -> String { "\(rawValue).\(key)" }
}
