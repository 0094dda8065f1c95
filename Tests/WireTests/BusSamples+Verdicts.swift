import BusMessages
import Foundation
import SwiftProtobuf

// Verdicts and revocations.
extension BusSamples {
    static let verdictReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.validate.verdict = .valid
            $0.validate.joinedAfterMs = 7
        },
        .with {
            $0.correlation = 2
            $0.session.connectionEpoch = 3
            $0.session.revokedAgoMs = 0
        },
        .with {
            $0.correlation = 3
            $0.revoke.uncertain = true
        },
    ]

    static let leaseReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.lease.epoch = 3
            $0.lease.controlVersion = 300
        },
        .with {
            $0.correlation = 2
            $0.session.connectionEpoch = 3
            $0.session.revokedAgoMs = 0
            $0.session.revocationNumber = 9
        },
    ]

    static let revocations: [Mss_Bus_V1_OperationCommand] = [
        .with {
            $0.correlation = 1
            $0.actor = "api"
            $0.revokeSessions.instanceID = "demo_app"
            $0.revokeSessions.userID = "u"
            $0.revokeSessions.sessionDigest = Data([1, 2])
        }
    ]

    static let digests: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 1
            $0.open.deviceID = "d1"
            $0.open.userID = "u"
            $0.open.sessionDigest = Data([1, 2])
        }
    ]

    static let endings: [Mss_Bus_V1_GatewayNotice] = [
        .with {
            $0.sessionsRevoked.instanceID = "demo_app"
            $0.sessionsRevoked.userID = "u"
            $0.sessionsRevoked.sessionDigest = Data([1, 2])
            $0.sessionsRevoked.correlation = 9
        },
        .with {
            $0.sessionInvalid.instanceID = "demo_app"
            $0.sessionInvalid.userID = "u"
            $0.sessionInvalid.sessionDigest = Data("s".utf8)
            $0.sessionInvalid.reason = "gone"
        },
    ]
}
