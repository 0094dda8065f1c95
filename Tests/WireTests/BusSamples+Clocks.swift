import BusMessages
import SwiftProtobuf

// The database time, the head at which a backlog opens, and non-persistent pushes whose notice is in flight.
extension BusSamples {
    static let backlogFetches: [Mss_Bus_V1_FetchCommand] = [
        .with {
            $0.correlation = 1
            $0.page.channelID = 2
            $0.page.limit = 64
            $0.page.newest = 10
            $0.page.newestUpto = 90
        }
    ]

    static let liveReplies: [Mss_Bus_V1_Reply] = [
        .with {
            $0.correlation = 1
            $0.databaseTimeMs = 1_800_000_000_000
            $0.fetch.after = 4
            $0.fetch.upto = 6
            $0.fetch.awaitedIds = [5, 6]
        },
        .with {
            $0.correlation = 2
            $0.taken.oplogIds = [6]
            $0.taken.missedIds = [5]
        },
    ]

    static let timedNotices: [Mss_Bus_V1_GatewayNotice] = [
        .with {
            $0.oplogs.channelID = 3
            $0.oplogs.after = 4
            $0.oplogs.upto = 5
            $0.oplogs.databaseTimeMs = 1_800_000_000_000
        }
    ]
}
