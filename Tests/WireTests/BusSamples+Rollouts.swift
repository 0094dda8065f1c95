import BusMessages
import Foundation
import SwiftProtobuf

// Roll-outs.
extension BusSamples {
    private static let rolloutName = Mss_Bus_V1_RolloutName.with {
        $0.instanceID = "demo_app"
        $0.bizType = "NEWS"
        $0.thirdMessageID = "r1"
    }

    static let rolloutCommands: [Mss_Bus_V1_OperationCommand] = [
        .with {
            $0.correlation = 1
            $0.startRollout = .with {
                $0.instanceID = "demo_app"
                $0.bizType = "NEWS"
                $0.oplog.shareStart = 7
                $0.oplog.shareSize = 100
                $0.stages = [100, 10_000]
                $0.intervalSeconds = 3_600
            }
        },
        .with {
            $0.correlation = 2
            $0.changeRollout.name = rolloutName
            $0.changeRollout.widenToStage = 2
        },
        .with {
            $0.correlation = 3
            $0.changeRollout.pause = true
        },
        .with {
            $0.correlation = 4
            $0.changeRollout.resume = true
        },
        .with {
            $0.correlation = 5
            $0.changeRollout.stop = true
        },
        .with {
            $0.correlation = 6
            $0.rollouts.instanceID = "demo_app"
            $0.rollouts.name = rolloutName
            $0.rollouts.limit = 50
        },
    ]

    private static let rollout = Mss_Bus_V1_Rollout.with {
        $0.name = rolloutName
        $0.state = 2
        $0.stages = [
            .with {
                $0.share = 100
                $0.thirdMessageID = "r1~1"
                $0.oplogID = 5
                $0.handedOut = 4
                $0.confirmed = 3
            }
        ]
        $0.intervalSeconds = 60
        $0.dueAtMs = 9
        $0.waitLeftMs = 8
        $0.startedBy = "console:a"
        $0.startedAtMs = 6
        $0.changedBy = "schedule"
        $0.changedAtMs = 7
    }

    static let rolloutReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.rollout.rollout = rollout
            $0.rollout.refusal = "no"
            $0.rollout.unchanged = true
            $0.rollout.uncertain = true
        },
        .with {
            $0.correlation = 2
            $0.rollouts.rollouts = [rollout]
        },
    ]

    static let sharedFetches: [Mss_Bus_V1_FetchCommand] = [
        .with { $0.page.slot = 9_999 },
        .with { $0.history.slot = 9_999 },
        .with { $0.summary.slot = 9_999 },
    ]
}
