import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The filters of a session's channels, from the store's last reply; pure.
///
/// A filter changes only with a registration. During a registration, and until one succeeds, nothing of a filtered
/// channel is read or sent: the gateway does not know where the new filter begins (`FilterHistory`).
struct SessionFilters {
    /// By channel id.
    private var histories: [Int64: FilterHistory] = [:]
    /// A registration in flight may change them.
    private(set) var areStale = true
    /// The digest of the filter rules that the last registration requested.
    private(set) var digest = 0
    /// The user's values that were last sent to the device.
    private var sentParameters: [Mss_Bus_V1_Parameter] = []
    private var sentRefused: [String] = []

    /// The filter history of a channel; nil: it has none.
    subscript(channelID: Int64) -> FilterHistory? { histories[channelID] }

    /// Whether a filtered channel must wait.
    func holds(_ channelID: Int64) -> Bool { areStale || histories[channelID] == nil }

    /// Records that a registration with these rules is sent.
    mutating func asked(_ types: FilteredTypes) {
        areStale = true
        digest = types.digest
    }

    /// Applies the reply to a registration.
    mutating func apply(_ channels: [Mss_Bus_V1_ChannelState]) {
        areStale = false
        histories = [:]
        for channel in channels where !channel.filters.isEmpty {
            histories[channel.channelID] = FilterHistory(bus: channel.filters)
        }
    }

    /// The frame with the user's values; nil: the device has them.
    mutating func frame(of reply: Mss_Bus_V1_SessionReply, bindNumber: UInt32) -> Mss_Device_V1_Packet? {
        let parameters = reply.userParameters.sorted { ($0.bizType, $0.name) < ($1.bizType, $1.name) }
        guard parameters != sentParameters || reply.refusedFilters != sentRefused else { return nil }
        (sentParameters, sentRefused) = (parameters, reply.refusedFilters)
        return .with {
            $0.userParameters.bindNumber = bindNumber
            $0.userParameters.parameters = parameters.map { parameter in
                .with {
                    $0.bizType = parameter.bizType
                    $0.name = parameter.name
                    $0.value = parameter.value
                }
            }
            $0.userParameters.refusedBizTypes = reply.refusedFilters
        }
    }

    /// Resets the state of the user, because another user is bound.
    mutating func forgetUser() {
        (sentParameters, sentRefused) = ([], [])
    }
}
