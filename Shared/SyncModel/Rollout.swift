/// A global push that goes out in stages, as it stands.
package struct Rollout: Hashable, Sendable {
    /// What a roll-out is called: of one configuration, by its unique data id.
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

    /// One stage, made or not.
    package struct Stage: Hashable, Sendable {
        /// Slots that have the push after it, of 10,000.
        package var share: Int
        /// The unique data id of its own push.
        package var id: ThirdMessageID
        /// Nil: not made yet.
        package var oplogID: OplogID?
        /// Devices that were given it, and whose apps confirmed it, where that was asked for.
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
    /// After which the next stage comes by itself; nil: by hand.
    package var interval: Duration?
    /// When that is; nil: by hand, or not now.
    package var dueAt: WallTime?
    /// Of a paused one: how long it still was until then.
    package var waitLeft: Duration?
    package var startedBy = ""
    package var startedAt = WallTime(milliseconds: 0)
    package var changedBy = ""
    package var changedAt = WallTime(milliseconds: 0)

    package init(name: Name, state: RolloutState) {
        self.name = name
        self.state = state
    }

    /// How many stages were made.
    package var reached: Int { stages.count { $0.oplogID != nil } }

    /// Whether it can be widened now; a paused one has to be resumed first.
    package var canWiden: Bool { state == .running }
    /// Whether it can resume.
    package var canResume: Bool { state == .paused }
    /// Whether it can be stopped, which recalls what was made.
    package var canStop: Bool { state != .stopped }
}
