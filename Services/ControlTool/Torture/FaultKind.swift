/// What a torture run can break, and where (reliability §2).
enum FaultKind: Hashable, Sendable {
    /// What is done to a process.
    enum Act: String, Sendable, CaseIterable {
        /// SIGKILL; its supervisor starts it again.
        case kill
        /// SIGSTOP, and SIGCONT when it is healed.
        case pause
        /// SIGTERM; its supervisor starts it again.
        case restart
    }

    /// Whose connections go bad, by both ends.
    enum Edge: String, Sendable, CaseIterable {
        case backendToIngest = "backend-ingest"
        case ingestToBroker = "ingest-broker"
        case writerToBroker = "writer-broker"
        case writerToDatabase = "writer-database"
        case gatewayToBroker = "gateway-broker"
        case deviceToGateway = "device-gateway"
        case validatorToBroker = "validator-broker"
        case validatorToTenant = "validator-tenant"
        case statisticsToBroker = "statistics-broker"
        case statisticsToDatabase = "statistics-database"
        case relayToBroker = "relay-broker"
        case relayToDatabase = "relay-database"
        case relayToTenant = "relay-tenant"

        var isAMQP: Bool { ends.server == "broker" }

        /// Who connects, and to whom.
        var ends: (client: String, server: String) {
            let parts = rawValue.split(separator: "-").map(String.init)
            return (parts[0], parts[1])
        }
    }

    /// How they go bad.
    enum Trouble: String, Sendable, CaseIterable {
        case cut
        case silence
        case silenceUp = "silence up"
        case silenceDown = "silence down"
        case delay
        case fragments
        case truncation
        case repeatedDeliveries = "repeated deliveries"
    }

    case process(Act, TortureStack.Tier)
    /// The broker dies and its disk is empty when it comes back.
    case brokerLosesData
    /// A queue disappears while it is in use.
    case queueDeletion
    /// The broker has no memory left and stops whoever publishes.
    case brokerAlarm
    case edge(Trouble, Edge)
    /// A process's wall clock jumps by hours, and back when it is healed.
    case clockJump(TortureStack.Tier)
    /// The database's flushes take a third of a second longer.
    case slowDisk
    /// The database's disk is full. Needs root, as the next.
    case fullDisk
    /// The database's machine loses its power: what was not flushed is gone.
    case powerCut
    /// A transaction holds the rows of channels that are pushed to.
    case lockedChannels
    /// A transaction holds a lock on `oplog` while a partition for a coming week is to be made.
    case heldPartitions
    /// The synchronous standby is away: commits wait for it.
    case standbyAway
    /// A session is idle in a transaction with a snapshot and a transaction id.
    case idleTransaction

    /// All there are.
    static let all: [FaultKind] = {
        var kinds: [FaultKind] = [.brokerLosesData, .queueDeletion, .brokerAlarm, .slowDisk, .fullDisk, .powerCut]
        kinds += [.lockedChannels, .heldPartitions, .standbyAway, .idleTransaction]
        kinds += TortureStack.Tier.allCases.filter { $0 != .broker }.map { .clockJump($0) }
        for tier in TortureStack.Tier.allCases {
            for act in Act.allCases { kinds.append(.process(act, tier)) }
        }
        for edge in Edge.allCases {
            for trouble in Trouble.allCases where trouble != .repeatedDeliveries || edge.isAMQP {
                kinds.append(.edge(trouble, edge))
            }
        }
        return kinds
    }()

    /// As the report and `--only` name it.
    var name: String {
        switch self {
        case .process(let act, let tier): "\(act.rawValue) \(tier.rawValue)"
        case .brokerLosesData: "broker loses its data"
        case .queueDeletion: "queue deletion"
        case .brokerAlarm: "broker alarm"
        case .edge(let trouble, let edge): "\(trouble.rawValue) \(edge.rawValue)"
        case .clockJump(let tier): "clock jump \(tier.rawValue)"
        case .slowDisk: "slow disk"
        case .fullDisk: "full disk"
        case .powerCut: "power cut"
        case .lockedChannels: "locked channels"
        case .heldPartitions: "relation lock over a week change"
        case .standbyAway: "synchronous standby away"
        case .idleTransaction: "idle in transaction"
        }
    }

    /// How long it lasts until it is healed, in milliseconds. A fault that is over at once has no time.
    var lengths: ClosedRange<Int> {
        switch self {
        case .process(.pause, _), .brokerAlarm, .edge, .clockJump, .slowDisk, .fullDisk, .powerCut: 500...6_000
        case .process, .brokerLosesData, .queueDeletion: 0...500
        case .lockedChannels: 1_000...4_000
        case .heldPartitions: 10_000...15_000
        case .standbyAway: 5_000...60_000
        case .idleTransaction: 5_000...30_000
        }
    }

    /// Whether a gateway's lease or a session's record may be lost by it, or its connections, without a client's
    /// noticing.
    var maySpoilSessions: Bool {
        switch self {
        case .process(_, let tier), .clockJump(let tier):
            ![.ingest, .validator, .statistics, .relay].contains(tier)
        case .edge(_, let edge):
            [.writerToBroker, .writerToDatabase, .gatewayToBroker, .deviceToGateway].contains(edge)
        case .lockedChannels, .idleTransaction: false
        case .brokerLosesData, .queueDeletion, .brokerAlarm, .slowDisk, .fullDisk, .powerCut, .heldPartitions,
            .standbyAway:
            true
        }
    }

    /// Whether the database's data must be on a disk of its own, which takes root to make.
    var needsDisk: Bool { self == .fullDisk || self == .powerCut }
}
