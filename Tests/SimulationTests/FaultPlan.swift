import Foundation

/// The rates of the faults of a run. Each seed draws its own, so some runs have much of one fault and nothing of
/// another (swarm testing).
struct FaultPlan {
    /// The kinds of faults. A rate is a number of faults in a second.
    enum Kind: CaseIterable {
        case writerDies, writerDiesAfterCommit, writerPauses, gatewayDies, gatewayPauses, gatewayOutlivesLease
        case leaseForgotten
        case ingestDies, ingestPauses
        case validatorDies
        case brokerConnectionFalls, brokerRestarts, brokerLosesDisk, queueDeleted
        case databaseRestarts, databaseFailsOver
        case deviceResets, deviceCutUp, deviceCutDown, appCrashes, userSwitches, sessionEnds, sessionRevoked
        case manyPushes
        // Faults of a trial.
        case clockJumps, databaseClockJumps, channelHeld, commitHangs, ruleChanges, ruleIsLost
        case recallAtOpening
        case thresholdBurst, mqttResets, mqttSessionEnds
    }

    /// A condition that holds in a whole run or not at all. `MSS_SIMULATION_TRIALS` lists the permitted ones, separated
    /// by commas. Default: all.
    enum Trial: String, CaseIterable {
        /// Every machine has a wall clock of its own, wrong by up to hours, and pushes expire after seconds to hours.
        case clocks
        case recalls
        /// Users with two devices, of which only one may receive single-device data.
        case owners
        case strangers
        /// Pages arrive late, and many pushes arrive while they are in flight.
        case bursts
        /// Several pushes to one target in one call, while rows are locked.
        case batches
        case slowCommits
        case rules
        case mqtt

        fileprivate static let permitted = ProcessInfo.processInfo.environment["MSS_SIMULATION_TRIALS"]?
            .split(separator: ",").map(String.init)
    }

    private(set) var rates: [Kind: Double] = [:]
    let trials: Set<Trial>
    let refusals: Double
    let lostAnswers: Double
    let noticeLoss: Double
    let forgets: Double
    let repeatedFrames: Double
    let frameHoles: Double
    /// One device acknowledges data that it does not have.
    let hasLiar: Bool
    let hasSimpleDevice: Bool
    /// After healing, more pushes follow without faults.
    let endsCalmly: Bool

    init(_ simulation: Simulation) {
        let drawn = Trial.allCases.filter { simulation.happens($0.share) }
        let trials = Set(drawn.filter { Trial.permitted?.contains($0.rawValue) ?? true })
        self.trials = trials
        for kind in Kind.allCases where simulation.happens(kind.trial.map { trials.contains($0) ? 0.8 : 0 } ?? 0.4) {
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

extension FaultPlan.Trial {
    /// The part of the runs in which the trial holds. A trial that makes a run long is rarer.
    fileprivate var share: Double { self == .slowCommits ? 0.12 : 0.25 }
}

extension FaultPlan.Kind {
    /// The trial that the fault belongs to.
    fileprivate var trial: FaultPlan.Trial? {
        switch self {
        case .clockJumps, .databaseClockJumps: .clocks
        case .channelHeld: .batches
        case .commitHangs: .slowCommits
        case .ruleChanges, .ruleIsLost: .rules
        case .thresholdBurst: .bursts
        case .recallAtOpening: .recalls
        case .mqttResets, .mqttSessionEnds: .mqtt
        default: nil
        }
    }

    fileprivate var usualRate: Double {
        switch self {
        case .deviceResets, .deviceCutUp, .deviceCutDown, .appCrashes: 0.5
        case .userSwitches, .sessionEnds, .sessionRevoked: 0.3
        case .manyPushes, .databaseClockJumps: 0.05
        case .channelHeld, .thresholdBurst, .mqttResets: 0.4
        case .mqttSessionEnds, .recallAtOpening: 0.8
        case .commitHangs, .clockJumps: 0.15
        case .ruleChanges, .ruleIsLost: 0.3
        case .brokerConnectionFalls: 0.3
        case .brokerRestarts, .brokerLosesDisk, .databaseRestarts, .databaseFailsOver, .leaseForgotten: 0.06
        default: 0.15
        }
    }
}
