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

        var isAMQP: Bool { rawValue.hasSuffix("-broker") }
    }

    /// How they go bad.
    enum Trouble: String, Sendable, CaseIterable {
        case cut, silence, silenceUp = "silence up", silenceDown = "silence down", delay, fragments, truncation
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

    /// All there are.
    static let all: [FaultKind] = {
        var kinds: [FaultKind] = [.brokerLosesData, .queueDeletion, .brokerAlarm]
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
        }
    }

    /// Whether it lasts until it is healed; others are over at once.
    var lasts: Bool {
        switch self {
        case .process(.pause, _), .brokerAlarm, .edge: true
        default: false
        }
    }
}
