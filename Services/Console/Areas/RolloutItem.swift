import SyncModel

/// A roll-out as the API and the pages show it.
struct RolloutItem: Encodable, Sendable {
    /// One stage, made or not.
    struct Stage: Encodable, Sendable {
        /// 1 for the first.
        let stage: Int
        /// Percent of the devices that have the push after it.
        let percent: String
        /// The unique data id of its own push.
        let thirdMsgId: String
        /// Absent: not made yet.
        let oplogId: Int64?
        /// Devices that were sent it, and whose apps confirmed it, counted up to 100,000; absent where not one roll-out
        /// alone is asked for.
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
    /// The stage reached; 1 for the first.
    let stage: Int
    /// Percent of the devices that have it by now.
    let percent: String
    let stages: [Stage]
    /// Absent: stages are made by hand.
    let everyMinutes: Int64?
    /// Milliseconds since 1970; absent: the next stage does not come by time, or not now.
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

    /// - Parameter hasFigures: whether it was counted how far its stages have come.
    init(_ rollout: Rollout, _ words: Words, hasFigures: Bool = false) {
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
