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

    /// All there are.
    static let all: [FaultKind] = {
        var kinds: [FaultKind] = [.brokerLosesData, .queueDeletion, .brokerAlarm, .slowDisk, .fullDisk, .powerCut]
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
        }
    }

    /// Whether it lasts until it is healed; others are over at once.
    var lasts: Bool {
        switch self {
        case .process(.pause, _), .brokerAlarm, .edge, .clockJump, .slowDisk, .fullDisk, .powerCut: true
        case .process, .brokerLosesData, .queueDeletion: false
        }
    }

    /// Whether the database's data must be on a disk of its own, which takes root to make.
    var needsDisk: Bool { self == .fullDisk || self == .powerCut }
}
