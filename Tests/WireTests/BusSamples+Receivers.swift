import BusMessages
import SwiftProtobuf

// The receivers of sync points, and the positions of stores.
extension BusSamples {
    static let receiverAcks: [Mss_Bus_V1_AckCommand] = [
        .with {
            $0.correlation = 1
            $0.channelID = 5
            $0.deviceID = "d1"
            $0.storeID = "s1"
            $0.upto = 9
            $0.userID = "u1"
            $0.acknowledged = 7
        }
    ]

    static let receiverReads: [Mss_Bus_V1_FetchCommand] = [
        .with {
            $0.correlation = 1
            $0.summary.channels = [.with { $0.userID = "u1" }]
        }
    ]

    static let receiverReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.session.channels = [.with { $0.acknowledged = 7 }]
        },
        .with {
            $0.correlation = 2
            $0.trace.global = true
        },
    ]
}
