/// How often what goes wrong in a run; each seed draws its own, so that some runs have much of one thing and nothing of
/// another (swarm testing).
struct FaultPlan {
    /// Times in a second that one of these happens to somebody.
    enum Kind: CaseIterable {
        case writerDies, writerDiesAfterCommit, writerPauses, gatewayDies, gatewayPauses, gatewayOutlivesLease
        case leaseForgotten
        case ingestDies, ingestPauses
        case validatorDies
        case brokerConnectionFalls, brokerRestarts, brokerLosesDisk, queueDeleted
        case databaseRestarts, databaseFailsOver
        case deviceResets, deviceCutUp, deviceCutDown, appCrashes, userSwitches, sessionEnds, sessionRevoked
        case manyPushes
    }

    private(set) var rates: [Kind: Double] = [:]
    let refusals: Double
    let lostAnswers: Double
    let noticeLoss: Double
    let forgets: Double
    let repeatedFrames: Double
    let frameHoles: Double
    /// A device tells of more than it has; one does not tell stored from confirmed.
    let hasLiar: Bool
    let hasSimpleDevice: Bool
    /// After healing, more is pushed while nothing fails.
    let endsCalmly: Bool

    init(_ simulation: Simulation) {
        for kind in Kind.allCases where simulation.happens(0.4) {
            rates[kind] = kind.usualRate * (0.3 + 1.7 * simulation.chance())
        }
        refusals = simulation.happens(0.3) ? simulation.chance() * 0.1 : 0
        lostAnswers = simulation.happens(0.4) ? simulation.chance() * 0.1 : 0
        noticeLoss = simulation.happens(0.4) ? simulation.chance() * 0.5 : 0
        forgets = simulation.happens(0.3) ? simulation.chance() * 0.2 : 0.01
        repeatedFrames = simulation.happens(0.3) ? simulation.chance() * 0.2 : 0
        frameHoles = simulation.happens(0.3) ? simulation.chance() * 0.1 : 0
        hasLiar = simulation.happens(0.3)
        hasSimpleDevice = simulation.happens(0.4)
        endsCalmly = simulation.happens(0.4)
    }
}

extension FaultPlan.Kind {
    fileprivate var usualRate: Double {
        switch self {
        case .deviceResets, .deviceCutUp, .deviceCutDown, .appCrashes: 0.5
        case .userSwitches, .sessionEnds, .sessionRevoked: 0.3
        case .manyPushes: 0.05
        case .brokerConnectionFalls: 0.3
        case .brokerRestarts, .brokerLosesDisk, .databaseRestarts, .databaseFailsOver, .leaseForgotten: 0.06
        default: 0.15
        }
    }
}
