import BusMessages
import Foundation
import SwiftProtobuf

// Device operations.
extension BusSamples {
    static let deviceOperation = Mss_Bus_V1_DeviceOperation.with {
        $0.operationID = "o1"
        $0.component = "ORDER"
        $0.entityKey = "17"
        $0.name = "update"
        $0.body = Data([0x7B, 0x7D])
        $0.children = [
            .with {
                $0.operationID = "o2"
                $0.component = "LINE"
                $0.entityKey = "1"
                $0.name = "create"
            }
        ]
        $0.submittedAtMs = 1_700_000_000_000
    }

    static let submissions = [
        Mss_Bus_V1_SubmitCommand.with {
            $0.correlation = 1
            $0.instanceID = "demo_app"
            $0.deviceID = "d1"
            $0.userID = "u1"
            $0.sessionID = "s1"
            $0.operations = [deviceOperation]
        }
    ]

    private static let name = Mss_Bus_V1_DeviceOperationName.with {
        $0.instanceID = "demo_app"
        $0.deviceID = "d1"
        $0.operationID = "o1"
    }

    static let relayCommands: [Mss_Bus_V1_RelayCommand] = [
        .with {
            $0.correlation = 1
            $0.list = .with {
                $0.instanceID = "demo_app"
                $0.state = 5
                $0.deviceID = "d1"
                $0.userID = "u1"
                $0.before = 9
                $0.limit = 10
            }
            $0.actor = "console:a"
            $0.source = "10.0.0.1"
        },
        .with {
            $0.correlation = 2
            $0.show = name
        },
        .with {
            $0.correlation = 3
            $0.retry = name
        },
    ]

    private static let row = Mss_Bus_V1_DeviceOperationRow.with {
        $0.number = 7
        $0.deviceID = "d1"
        $0.userID = "u1"
        $0.operationID = "o1"
        $0.component = "ORDER"
        $0.entityKey = "17"
        $0.name = "update"
        $0.state = 5
        $0.attempts = 3
        $0.code = 504
        $0.message = "given up"
        $0.takenAtMs = 1_700_000_000_000
        $0.atMs = 1_700_000_001_000
        $0.bodyBytes = 2
        $0.children = 1
    }

    static let operationReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.submit.refusals = [
                .with {
                    $0.operationID = "o1"
                    $0.code = 404
                    $0.message = "no endpoint"
                }
            ]
            $0.submit.retryAfterMs = 1_000
        },
        .with {
            $0.correlation = 2
            $0.deviceOperations.operations = [row]
            $0.deviceOperations.counts = [
                .with {
                    $0.state = 1
                    $0.operations = 12
                }
            ]
            $0.deviceOperations.days = [
                .with {
                    $0.day = "2026-11-23"
                    $0.component = "ORDER"
                    $0.accepted = 5
                    $0.refused = 2
                    $0.dead = 1
                    $0.attempts = 9
                    $0.waitedMs = 1_234
                }
            ]
        },
        .with {
            $0.correlation = 3
            $0.deviceOperation.operation = row
            $0.deviceOperation.refusal = "none"
        },
    ]

    static let relayInstances: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.putInstance.instanceID = "demo_app"
            $0.putInstance.relayURL = "http://t/o"
        }
    ]
}
