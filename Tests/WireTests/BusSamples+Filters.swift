import BusMessages
import Foundation
import SwiftProtobuf

// Subscription parameters and conversations.
extension BusSamples {
    private static let parameter = Mss_Bus_V1_Parameter.with {
        $0.bizType = "NEWS"
        $0.name = "max"
        $0.value = "3.0"
    }

    private static let filter = Mss_Bus_V1_ChannelFilter.with {
        $0.upto = 9
        $0.filter = "{\"max\":3.0}\nn < $max"
    }

    static let filterCommands: [Mss_Bus_V1_SessionCommand] = [
        .with {
            $0.correlation = 1
            $0.open.deviceID = "d1"
            $0.open.filtered = ["NEWS", "UCHAT"]
            $0.open.parameters = [parameter]
        },
        .with {
            $0.correlation = 2
            $0.keepParameters.instanceID = "demo_app"
            $0.keepParameters.userID = "u1"
            $0.keepParameters.parameters = [parameter]
        },
    ]

    static let filterReplies = [
        Mss_Bus_V1_Reply.with {
            $0.correlation = 1
            $0.session.connectionEpoch = 5
            $0.session.channels = [
                .with {
                    $0.channelID = 5
                    $0.filters = [filter]
                }
            ]
            $0.session.rereads = [
                .with {
                    $0.rereadID = 1
                    $0.newlyMatching = true
                }
            ]
            $0.session.userParameters = [parameter]
            $0.session.refusedFilters = ["NEWS"]
        }
    ]

    static let filteredFetches: [Mss_Bus_V1_FetchCommand] = [
        .with {
            $0.correlation = 1
            $0.page.channelID = 5
            $0.page.filters = [filter]
        },
        .with {
            $0.correlation = 2
            $0.history.channelID = 5
            $0.history.filter = filter.filter
        },
        .with {
            $0.correlation = 3
            $0.summary.channels = [
                .with {
                    $0.channelID = 5
                    $0.filter = filter.filter
                }
            ]
        },
    ]

    static let attributedAppends = [
        Mss_Bus_V1_AppendCommand.with {
            $0.correlation = 1
            $0.oplog.attributes = "{\"n\":1.0}"
        }
    ]

    static let appendsToConversations = [
        Mss_Bus_V1_AppendCommand.with {
            $0.correlation = 1
            $0.oplog.conversation = "chat"
        }
    ]

    static let conversationFetches: [Mss_Bus_V1_FetchCommand] = [
        .with {
            $0.correlation = 1
            $0.history.channelID = 5
            $0.history.conversation = "chat"
        },
        .with {
            $0.correlation = 2
            $0.summary.channels = [.with { $0.channelID = 5 }]
            $0.summary.conversations.after = "case"
            $0.summary.conversations.count = 16
        },
    ]

    static let conversationReplies = [
        Mss_Bus_V1_Reply.with {
            $0.correlation = 2
            $0.summary.channels = [.with { $0.conversation = "chat" }]
            $0.summary.more = true
            $0.summary.next = "chat"
        }
    ]

    static let recordsOfConversations = [
        Mss_Bus_V1_OperationCommand.with {
            $0.correlation = 1
            $0.recordPush.conversation = "chat"
        }
    ]

    static let filteredConfigurations = [
        Mss_Bus_V1_ControlCommand.with {
            $0.correlation = 1
            $0.putConfiguration.bizType = "NEWS"
            $0.putConfiguration.filter = "n < $max"
            $0.putConfiguration.attributes = "n number"
            $0.putConfiguration.parameters = "max number = 3"
            $0.putConfiguration.filtered = true
        }
    ]

    static let keptParameters = [
        Mss_Bus_V1_GatewayNotice.with {
            $0.parametersKept.instanceID = "demo_app"
            $0.parametersKept.userID = "u1"
        }
    ]
}
