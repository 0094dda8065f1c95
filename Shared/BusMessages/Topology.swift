import SyncModel

/// A shared queue of commands with competing consumers; answers go to where the command says.
package enum CommandQueue: String, Sendable, CaseIterable {
    /// Ingest and consoles to oplog writer: store and number.
    case append = "mss.append"
    /// Gateway to oplog writer: sessions, sweeps.
    case session = "mss.session"
    /// Gateway to oplog writer: leases. Apart from `session`: behind every session that comes back, and the sweep, a
    /// renewal would come too late, and a lease that is lost then has every session announced once more.
    case lease = "mss.lease"
    /// Gateway to oplog writer: read a page of a channel.
    case fetch = "mss.fetch"
    /// Gateway to oplog writer: stored acknowledgements.
    case ack = "mss.ack"
    /// The tool and consoles to oplog writer: changes of instances, keys and configurations.
    case control = "mss.control"
    /// Everybody to oplog writer: what instances, keys and configurations there are. Apart from `control`, so that who
    /// may ask may not change anything (SEC10).
    case snapshot = "mss.snapshot"
    /// Ingest to oplog writer: traces, dry runs, recalls and revocations that backends ask for.
    case operation = "mss.operation"
    /// Consoles and the tool to oplog writer: the same, and what only people may ask: payloads, devices, dead letters,
    /// records of their pushes. Apart from `operation`, so that no ingest may ask it, or speak for a person (SEC10).
    case people = "mss.people"
    /// Ingest and gateway to oplog writer: what all of them count together, nonces and pushes of a day.
    case admission = "mss.admission"
    /// Gateways, and consoles for who tries an endpoint, to session validator: consistency checks.
    case validate = "mss.validate"
    /// Gateway to relay: operations of devices.
    case submit = "mss.submit"
    /// Consoles and the tool to relay: what has become of operations. Apart from `submit`, so that no gateway may ask it.
    case relay = "mss.relay"

    /// The caller's time-out, which is also how long a command may wait in the queue: what is older is worth nothing.
    package var timeout: Duration {
        switch self {
        case .append: .milliseconds(2_500)
        case .admission: .milliseconds(1_500)
        case .lease: Limits.gatewayLeaseRenewal
        case .session, .fetch, .ack, .control, .snapshot, .operation, .people, .submit, .relay: .seconds(5)
        case .validate: .seconds(8)
        }
    }

    /// Bodies that may wait; the broker refuses more, so that an outage cannot fill its memory. Those of operations are
    /// larger.
    package var maxBodies: Int { self == .submit ? 2_000 : 10_000 }

    /// Who consumes it.
    package var consumer: BusTier {
        switch self {
        case .append, .session, .lease, .fetch, .ack, .control, .snapshot, .operation, .people, .admission: .writer
        case .validate: .validator
        case .submit, .relay: .relay
        }
    }

    /// The exchange that leads to this queue alone, so that the right to send commands is one for each queue: on the
    /// default exchange it is one for all of them.
    package var exchange: String { Topology.exchange(to: rawValue) }

    /// How answers come back; nil: straight, to the connection that asked.
    package var answers: AnswerExchange? {
        switch consumer {
        case .validator: .verdicts
        case .relay: .relayed
        default: nil
        }
    }
}

/// Names of exchanges and queues that are no command queues.
package enum Topology {
    /// Version of the schemas that this build writes into every envelope.
    package static let schemaVersion: UInt32 = 1
    /// Direct exchange to the gateways, keyed by gateway id.
    package static let noticesExchange = "mss.notices"
    /// Fanout to every gateway: verdicts that end at once.
    package static let everyGatewayExchange = "mss.gateways"
    /// Fanout that announces new versions of the control data.
    package static let controlChangesExchange = "mss.control.changes"
    /// Fanout to every console: how each process stands.
    package static let reportsExchange = "mss.reports"
    /// Durable queue of statistics facts.
    package static let factsQueue = "mss.facts"
    /// Where facts go that the aggregator cannot read.
    package static let deadFactsQueue = "mss.facts.dead"

    /// Queues that processes share: what waits in them is work that nobody has taken.
    package static let sharedQueues = CommandQueue.allCases.map(\.rawValue) + [factsQueue, deadFactsQueue]

    /// The direct exchange in front of a queue; its bindings have the empty key.
    package static func exchange(to queue: String) -> String { "mss.to." + queue.dropFirst("mss.".count) }

    /// The exclusive queue of one gateway.
    package static func noticesQueue(gatewayID: String) -> String { "mss.notices.\(gatewayID)" }
    /// The exclusive queue on which one process hears of control changes.
    package static func controlChangesQueue(processID: String) -> String { "mss.control.changes.\(processID)" }
    /// The exclusive queue on which one console hears of processes.
    package static func reportsQueue(processID: String) -> String { "\(reportsExchange).\(processID)" }
}
