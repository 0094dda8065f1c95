import BusMessages

/// The rights of each tier to each exchange and queue of the broker (SEC10). Everything that is not listed is refused.
/// A new exchange or queue needs a row.
enum BrokerRightsMatrix {
    /// Tiers that may publish to an exchange. The empty name is the default exchange, which leads to every queue.
    static let publish: [String: Set<String>] = [
        "": [],
        "mss.to.append": ["ingest", "console", "relay"],
        "mss.to.session": ["gateway"],
        "mss.to.lease": ["gateway"],
        "mss.to.fetch": ["gateway"],
        "mss.to.ack": ["gateway"],
        "mss.to.control": ["console", "tool"],
        "mss.to.snapshot": ["ingest", "gateway", "validator", "relay", "console", "tool"],
        "mss.to.admission": ["ingest", "gateway"],
        "mss.to.operation": ["ingest"],
        "mss.to.people": ["console", "tool"],
        "mss.to.validate": ["gateway", "console", "tool"],
        "mss.to.submit": ["gateway"],
        "mss.to.relay": ["console", "tool"],
        "mss.to.facts": ["gateway"],
        "mss.to.facts.dead": [],
        "mss.to.probe": Set(BusTier.allCases.map(\.rawValue)),
        "mss.stored": ["writer"],
        "mss.verdicts": ["validator"],
        "mss.relayed": ["relay"],
        "mss.taken": ["gateway"],
        "mss.notices": ["writer"],
        "mss.gateways": ["validator"],
        "mss.control.changes": ["writer"],
        "mss.reports": ["ingest", "writer", "gateway", "validator", "statistics", "console", "notifier", "relay"],
    ]

    /// Tiers that may consume from a queue.
    static let consume: [String: Set<String>] = [
        "mss.append": ["writer"],
        "mss.session": ["writer"],
        "mss.lease": ["writer"],
        "mss.fetch": ["writer"],
        "mss.ack": ["writer"],
        "mss.control": ["writer"],
        "mss.snapshot": ["writer"],
        "mss.admission": ["writer"],
        "mss.operation": ["writer"],
        "mss.people": ["writer"],
        "mss.validate": ["validator"],
        "mss.submit": ["relay"],
        "mss.relay": ["relay"],
        "mss.facts": ["statistics"],
        "mss.facts.dead": [],
        "mss.probe": [],
        "mss.notices.x": ["gateway"],
        "mss.control.changes.x": ["ingest", "gateway", "validator", "relay", "console"],
        "mss.reports.x": ["console", "tool"],
        "mss.stored.x": ["ingest", "gateway", "validator", "relay", "console", "tool"],
        "mss.verdicts.x": ["gateway", "console", "tool"],
        "mss.relayed.x": ["gateway", "console", "tool"],
        "mss.taken.x": ["writer"],
    ]

    /// Tiers that may declare and delete a queue: only its consumers, and not the durable queues.
    static let configure = consume.merging(["mss.facts": [], "stranger": []]) { $1 }

    /// Tiers that may bind a queue to an exchange that they read: its owners, and the tiers that count its messages.
    static let fill = configure.merging(Topology.sharedQueues.map { ($0, ["console", "tool"]) }) { $0.union($1) }

    /// Tiers that may bind a queue of their own to an exchange.
    static let bind: [String: Set<String>] = [
        "mss.to.append": ["writer"],
        "mss.to.session": ["writer"],
        "mss.to.lease": ["writer"],
        "mss.to.fetch": ["writer"],
        "mss.to.ack": ["writer"],
        "mss.to.control": ["writer"],
        "mss.to.snapshot": ["writer"],
        "mss.to.admission": ["writer"],
        "mss.to.operation": ["writer"],
        "mss.to.people": ["writer"],
        "mss.to.validate": ["validator"],
        "mss.to.submit": ["relay"],
        "mss.to.relay": ["relay"],
        "mss.to.facts": [],
        "mss.to.facts.dead": [],
        "mss.to.probe": [],
        "mss.stored": ["ingest", "gateway", "validator", "relay", "console", "tool"],
        "mss.verdicts": ["gateway", "console", "tool"],
        "mss.relayed": ["gateway", "console", "tool"],
        "mss.taken": ["writer"],
        "mss.notices": ["gateway"],
        "mss.gateways": ["gateway"],
        "mss.control.changes": ["ingest", "gateway", "validator", "relay", "console"],
        "mss.reports": ["console", "tool"],
    ]
}
