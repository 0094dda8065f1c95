import BusMessages
import Foundation
import SwiftProtobuf

// Keys, and the counts that processes share.
extension BusSamples {
    static let admissions: [Mss_Bus_V1_AdmissionCommand] = [
        .with {
            $0.correlation = 1
            $0.claimNonce = .with {
                $0.keyID = "k1"
                $0.nonce = Data([1, 2])
                $0.claim = Data([3])
                $0.expiresAtMs = 1_700_000_600_000
            }
        },
        .with {
            $0.correlation = 2
            $0.takeQuota = .with {
                $0.instanceID = "demo_app"
                $0.keyID = "k1"
                $0.pushes = 5
                $0.pushesPerDay = 1_000
            }
        },
    ]

    static let limits = Mss_Bus_V1_KeyLimits.with {
        $0.requestsPerSecond = 10
        $0.pushesPerDay = 1_000
    }

    static let snapshotRequests: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.snapshot.knownVersion = 7
            $0.snapshot.keyPurpose = .device
        }
    ]

    static let keyCommands: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.createKey = .with {
                $0.instanceID = "demo_app"
                $0.purpose = .callout
                $0.secret = Data([7])
                $0.limits = limits
            }
            $0.actor = "a"
        },
        .with {
            $0.correlation = 2
            $0.revokeKey.instanceID = "demo_app"
            $0.revokeKey.keyID = "k1"
        },
        .with {
            $0.correlation = 3
            $0.resealKeys = .init()
        },
        .with {
            $0.correlation = 4
            $0.putInstance = .with {
                $0.instanceID = "demo_app"
                $0.requiresSignature = true
                $0.limits = limits
                $0.keys = [
                    .with {
                        $0.keyID = "k1"
                        $0.purpose = .backend
                        $0.sealedSecret = Data([8])
                        $0.limits = limits
                        $0.createdAtMs = 1_700_000_000_000
                    }
                ]
            }
        },
    ]

    static let keyIDs: [Mss_Bus_V1_ControlCommand] = [
        .with {
            $0.correlation = 1
            $0.createKey.instanceID = "demo_app"
            $0.createKey.keyID = "k1"
        }
    ]

    static let dayEnds: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 2
            $0.quota.granted = 5
            $0.quota.resetsAtMs = 1_700_006_400_000
            $0.quota.resetsInMs = 6_400_000
        }
    ]

    static let admissionReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.claim.fresh = true
        },
        .with {
            $0.correlation = 2
            $0.quota.granted = 5
            $0.quota.remaining = 6
            $0.quota.resetsAtMs = 1_700_006_400_000
        },
        .with {
            $0.correlation = 3
            $0.control.keyID = "k1"
            $0.control.secret = Data([7])
            $0.control.resealed = 2
        },
    ]
}
