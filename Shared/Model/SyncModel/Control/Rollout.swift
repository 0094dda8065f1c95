/// The state of a global push in stages.
package struct Rollout: Hashable, Sendable {
    /// The name of a roll-out: its configuration and its thirdMsgId.
    package struct Name: Hashable, Sendable {
        package var instanceID: InstanceID
        package var bizType: BizType
        package var id: ThirdMessageID

        package init(instanceID: InstanceID, bizType: BizType, id: ThirdMessageID) {
            self.instanceID = instanceID
            self.bizType = bizType
            self.id = id
        }
    }

    /// One stage, made or planned.
    package struct Stage: Hashable, Sendable {
        /// The number of slots, of 10,000, that have the push after this stage.
        package var share: Int
        /// The thirdMsgId of the stage's push.
        package var id: ThirdMessageID
        /// A nil value means: the stage is not made yet.
        package var oplogID: OplogID?
        /// Devices with a hand-out, and devices with a confirmation, where figures were requested.
        package var handedOut: Int64 = 0
        package var confirmed: Int64 = 0

        package init(share: Int, id: ThirdMessageID, oplogID: OplogID?) {
            self.share = share
            self.id = id
            self.oplogID = oplogID
        }
    }

    package var name: Name
    package var state: RolloutState
    package var stages: [Stage] = []
    /// The time between stages; nil: an operator makes each stage.
    package var interval: Duration?
    /// When the next stage is made; nil: by an operator, or not while paused.
    package var dueAt: WallTime?
    /// For a paused roll-out: the time that remained until the next stage.
    package var waitLeft: Duration?
    package var startedBy = ""
    package var startedAt = WallTime(milliseconds: 0)
    package var changedBy = ""
    package var changedAt = WallTime(milliseconds: 0)

    package init(name: Name, state: RolloutState) {
        self.name = name
        self.state = state
    }

    /// The number of stages that were made.
    package var reached: Int { stages.count { $0.oplogID != nil } }

    /// Whether it can be widened now. A paused roll-out must be resumed first.
    package var canWiden: Bool { state == .running }
    /// Whether it can resume.
    package var canResume: Bool { state == .paused }
    /// Whether it can be stopped, which recalls its pushes.
    package var canStop: Bool { state != .stopped }
}

/// The state of a roll-out.
package enum RolloutState: Int16, Hashable, Sendable, CaseIterable {
    /// The next stage is made by time or by an operator.
    case running = 1
    /// No stage is made until it is resumed; the time to the next stage does not run.
    case paused = 2
    /// Ended early; its pushes were recalled.
    case stopped = 3
    /// Every stage was made.
    case completed = 4

    /// The state in commands and in the API.
    package var word: String {
        switch self {
        case .running: "running"
        case .paused: "paused"
        case .stopped: "stopped"
        case .completed: "completed"
        }
    }
}
