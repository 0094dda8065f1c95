import BusMessages
import Foundation
import SwiftProtobuf
import SyncModel

// Commands of operators at the console and in `mssctl`, and the replies.
extension BusSamples {
    private static let record = Mss_Bus_V1_OperationRecord.with {
        $0.number = 7
        $0.recordedAtUs = 1_700_000_000_123_456
        $0.actor = "console:alice"
        $0.action = 2
        $0.instanceID = "demo_app"
        $0.subject = "UCHAT"
        $0.before = "{}"
        $0.after = "[]"
        $0.previousHash = Data([1, 2])
        $0.hash = Data([3, 4])
    }

    static let instanceChanges: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.createInstance.instanceID = "demo_app"
        },
        .with {
            $0.correlation = 2
            $0.modifyInstance.instanceID = "demo_app"
            $0.modifyInstance.revision = 3
        },
        .with {
            $0.correlation = 3
            $0.records = .with {
                $0.instanceID = "demo_app"
                $0.actor = "mssctl:root"
                $0.action = 5
                $0.fromMs = 1_690_000_000_000
                $0.toMs = 1_700_000_000_000
                $0.before = 9
                $0.after = 0
                $0.limit = 200
            }
        },
    ]

    static let personCommands: [Mss_Bus_V1_OperationCommand] = [
        .with {
            $0.correlation = 1
            $0.disconnect.instanceID = "demo_app"
            $0.disconnect.deviceID = "d1"
        },
        .with {
            $0.correlation = 2
            $0.device.instanceID = "demo_app"
            $0.device.deviceID = "d1"
        },
        .with {
            $0.correlation = 3
            $0.recordPush = .with {
                $0.oplog.instanceID = "demo_app"
                $0.payload = Data([5, 6])
                $0.binary = true
                $0.operatingSystem = .ios
                $0.minimumVersion = "1"
                $0.maximumVersion = "2"
                $0.validUntilMs = 8
            }
        },
        .with {
            $0.correlation = 4
            $0.trace.oplog.oplogID = 7
            $0.trace.withPayload = true
        },
    ]

    static let personReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.control.refusal = "no"
            $0.control.stale = true
        },
        .with {
            $0.correlation = 2
            $0.disconnect.connected = true
        },
        .with {
            $0.correlation = 3
            $0.device.device.deviceID = "d1"
            $0.device.device.sinceMs = 8
            $0.device.channels = [
                .with {
                    $0.kind = .globalDevice
                    $0.bizType = "UCHAT"
                    $0.head = 9
                    $0.syncPoint = 8
                }
            ]
        },
        .with {
            $0.correlation = 4
            $0.record.number = 7
        },
        .with {
            $0.correlation = 5
            $0.records.records = [record]
            $0.records.more = true
            $0.records.headNumber = 9
            $0.records.headHash = Data([7])
        },
    ]

    // The addresses of operators.
    static let personSources: [Mss_Bus_V1_OperationCommand] = [
        .with {
            $0.correlation = 1
            $0.by = OperationActor("console:alice", from: "192.0.2.1")
        }
    ]

    static let changeSources: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.by = OperationActor("console:alice", from: "192.0.2.1")
        }
    ]

    static let recordSources: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.records.records = [.with { $0.source = "192.0.2.1" }]
        }
    ]

    static let disconnections: [Mss_Bus_V1_GatewayNotice] = [
        .with {
            $0.disconnect.instanceID = "demo_app"
            $0.disconnect.deviceID = "d1"
        }
    ]
}
