import Foundation
import SwiftProtobuf
package import SyncModel

// Conversions of roll-outs.

extension SyncModel.Rollout.Name {
    /// Converts a name of the bus.
    package init(bus: Mss_Bus_V1_RolloutName) {
        self.init(
            instanceID: InstanceID(bus.instanceID), bizType: BizType(bus.bizType),
            id: ThirdMessageID(bus.thirdMessageID))
    }

    /// The name as a bus message.
    package var bus: Mss_Bus_V1_RolloutName {
        .with {
            $0.instanceID = instanceID.text
            $0.bizType = bizType.text
            $0.thirdMessageID = id.text
        }
    }
}

extension SyncModel.Rollout {
    /// The value is nil for a state that this build does not know.
    package init?(bus: Mss_Bus_V1_Rollout) {
        guard let state = RolloutState(rawValue: Int16(truncatingIfNeeded: bus.state)) else { return nil }
        self.init(name: Name(bus: bus.name), state: state)
        stages = bus.stages.map { stage in
            var read = Stage(
                share: Int(stage.share), id: ThirdMessageID(stage.thirdMessageID),
                oplogID: stage.oplogID == 0 ? nil : OplogID(stage.oplogID))
            (read.handedOut, read.confirmed) = (stage.handedOut, stage.confirmed)
            return read
        }
        interval = bus.intervalSeconds == 0 ? nil : .seconds(Int64(bus.intervalSeconds))
        dueAt = bus.dueAtMs == 0 ? nil : WallTime(milliseconds: bus.dueAtMs)
        waitLeft = bus.waitLeftMs == 0 ? nil : .milliseconds(bus.waitLeftMs)
        startedBy = bus.startedBy
        startedAt = WallTime(milliseconds: bus.startedAtMs)
        changedBy = bus.changedBy
        changedAt = WallTime(milliseconds: bus.changedAtMs)
    }

    /// The roll-out as a bus message.
    package var bus: Mss_Bus_V1_Rollout {
        .with {
            $0.name = name.bus
            $0.state = Int32(state.rawValue)
            $0.stages = stages.map { stage in
                .with {
                    $0.share = UInt32(stage.share)
                    $0.thirdMessageID = stage.id.text
                    $0.oplogID = stage.oplogID?.value ?? 0
                    $0.handedOut = stage.handedOut
                    $0.confirmed = stage.confirmed
                }
            }
            $0.intervalSeconds = UInt32(clamping: interval?.components.seconds ?? 0)
            $0.dueAtMs = dueAt?.milliseconds ?? 0
            // At least 1, because 0 means that there is no wait.
            $0.waitLeftMs = waitLeft.map { max($0.wholeMilliseconds, 1) } ?? 0
            $0.startedBy = startedBy
            $0.startedAtMs = startedAt.milliseconds
            $0.changedBy = changedBy
            $0.changedAtMs = changedAt.milliseconds
        }
    }
}
