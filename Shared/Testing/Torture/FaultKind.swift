/// A fault that a torture run can inject (F).
enum FaultKind: Hashable, Sendable {
    /// An action on a process.
    enum Act: String, Sendable, CaseIterable {
        /// SIGKILL. The supervisor starts the process again.
        case kill
        /// SIGSTOP. Healing sends SIGCONT.
        case pause
        /// SIGTERM. The supervisor starts the process again.
        case restart
    }

    /// The two ends of the connections that a fault affects.
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

        /// The connecting side and the listening side.
        var ends: (client: String, server: String) {
            let parts = rawValue.split(separator: "-").map(String.init)
            return (parts[0], parts[1])
        }
    }

    /// The kind of network fault.
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
    /// The broker dies and restarts with an empty disk.
    case brokerLosesData
    /// A queue is deleted while it is in use.
    case queueDeletion
    /// The broker has a memory alarm and blocks all publishers.
    case brokerAlarm
    case edge(Trouble, Edge)
    /// A process's wall clock jumps by hours. Healing sets it back.
    case clockJump(TortureStack.Tier)
    /// Each flush of the database takes 300 ms longer.
    case slowDisk
    /// The database's disk is full. This fault and the next one need root.
    case fullDisk
    /// The database's machine loses its power, with all data that was not flushed.
    case powerCut
    /// A transaction locks channel rows that backends push to.
    case lockedChannels
    /// A transaction locks `oplog` while maintenance creates a partition for a coming week.
    case heldPartitions
    /// The synchronous standby is absent, so commits wait for it.
    case standbyAway
    /// A session is idle in a transaction with a snapshot and a transaction id.
    case idleTransaction

    /// All kinds of faults.
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

    /// Name in the report and for `--only`.
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

    /// Time until the fault is healed, in milliseconds. A fault that ends by itself only delays the end of its round.
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

    /// Whether the fault can lose a lease, a session's registration or a connection without the client's notice.
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

    /// Whether the database's data must be on a separate disk, which only root can create.
    var needsDisk: Bool { self == .fullDisk || self == .powerCut }
}
