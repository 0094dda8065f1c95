import SyncModel

/// A roll-out as the API and the pages show it.
struct RolloutItem: Encodable, Sendable {
    /// One stage, started or not.
    struct Stage: Encodable, Sendable {
        /// 1 for the first.
        let stage: Int
        /// The percentage of the devices that the roll-out is for after this stage.
        let percent: String
        /// The unique data id of the stage's push.
        let thirdMsgId: String
        /// Absent: the stage is not started.
        let oplogId: Int64?
        /// The number of devices that were sent the stage, and of those that confirmed it, up to 100,000. Absent in a
        /// list of roll-outs.
        let sent: Int64?
        let arrived: Int64?

        // For pages alone.
        let isMade: Bool
        let trace: String

        private enum CodingKeys: String, CodingKey { case stage, percent, thirdMsgId, oplogId, sent, arrived }
    }

    let bizType: String
    let thirdMsgId: String
    /// `running`, `paused`, `stopped` or `completed`.
    let state: String
    /// The number of the last started stage; 1 for the first.
    let stage: Int
    /// The percentage of the devices that the roll-out is for now.
    let percent: String
    let stages: [Stage]
    /// Absent: an operator starts each stage.
    let everyMinutes: Int64?
    /// Milliseconds since 1970; absent when no time is set for the next stage.
    let dueAt: Int64?
    let startedBy: String
    let startedAt: Int64
    let changedBy: String
    let changedAt: Int64

    // For pages alone.
    let stateWord: String
    let isRunning: Bool
    let isPaused: Bool
    let canStop: Bool
    let stageCount: Int
    let nextStage: Int
    let confirmWiden: String
    let dueText: String?
    let startedText: String
    let changedText: String
    let page: String

    private enum CodingKeys: String, CodingKey {
        case bizType, thirdMsgId, state, stage, percent, stages, everyMinutes, dueAt, startedBy, startedAt, changedBy
        case changedAt
    }

    /// - Parameter hasFigures: whether the roll-out has the figures of its stages.
    init(_ rollout: Rollout, _ words: PageTexts, hasFigures: Bool = false) {
        let name = rollout.name
        bizType = name.bizType.text
        thirdMsgId = name.id.text
        state = rollout.state.word
        stage = rollout.reached
        percent = Self.percent(of: rollout, at: rollout.reached)
        stages = rollout.stages.enumerated().map { number, stage in
            Stage(
                stage: number + 1, percent: RolloutPlan.percent(stage.share), thirdMsgId: stage.id.text,
                oplogId: stage.oplogID?.value, sent: hasFigures ? stage.handedOut : nil,
                arrived: hasFigures ? stage.confirmed : nil,
                isMade: stage.oplogID != nil,
                trace: Paths.page(
                    name.instanceID, "trace", query: [("bizType", name.bizType.text), ("thirdMsgId", stage.id.text)]))
        }
        everyMinutes = rollout.interval.map { $0.components.seconds / 60 }
        dueAt = rollout.dueAt?.milliseconds
        (startedBy, changedBy) = (rollout.startedBy, rollout.changedBy)
        (startedAt, changedAt) = (rollout.startedAt.milliseconds, rollout.changedAt.milliseconds)
        stateWord = words.text("rolloutState.\(rollout.state.word)")
        isRunning = rollout.canWiden
        isPaused = rollout.canResume
        canStop = rollout.canStop
        stageCount = rollout.stages.count
        nextStage = rollout.reached + 1
        confirmWiden = words.text("confirmWiden", "\(Self.percent(of: rollout, at: rollout.reached + 1)) %")
        dueText = rollout.dueAt?.text
        (startedText, changedText) = (rollout.startedAt.text, rollout.changedAt.text)
        page = Self.page(name)
    }

    /// The roll-out's own page.
    static func page(_ name: Rollout.Name) -> String {
        Paths.page(
            name.instanceID, "rollout", query: [("bizType", name.bizType.text), ("thirdMsgId", name.id.text)])
    }

    private static func percent(of rollout: Rollout, at stage: Int) -> String {
        rollout.stages.indices.contains(stage - 1) ? RolloutPlan.percent(rollout.stages[stage - 1].share) : "0"
    }
}
