import BusMessages
import SyncModel

/// By which filters a session's channels go, as the store said last; pure.
///
/// A filter changes in a registration alone. While one is under way, and until one has come through, nothing of the
/// filtered channels is read or sent: the gateway does not know where the new filter begins (FilterHistory).
struct SessionFilters {
    /// By the channel's number.
    private var histories: [Int64: FilterHistory] = [:]
    /// A registration may have changed them.
    private(set) var areStale = true
    /// Of the rules that the last registration asked by.
    private(set) var digest = 0
    /// What the device was told of its user's values.
    private var told: [Mss_Bus_V1_Parameter] = []
    private var toldRefused: [String] = []
    /// The number of the device's last frame of values, and whether its answer is awaited.
    var lastKeeping: UInt32 = 0
    var isKeeping = false

    /// The filter history of a channel; nil: it has none.
    subscript(channelID: Int64) -> FilterHistory? { histories[channelID] }

    /// Whether a filtered channel has to wait.
    func holds(_ channelID: Int64) -> Bool { areStale || histories[channelID] == nil }

    /// A registration goes out, by these rules.
    mutating func asked(_ types: FilteredTypes) {
        areStale = true
        digest = types.digest
    }

    /// A registration came back.
    mutating func learn(_ channels: [Mss_Bus_V1_ChannelState]) {
        areStale = false
        histories = [:]
        for channel in channels where !channel.filters.isEmpty {
            histories[channel.channelID] = FilterHistory(bus: channel.filters)
        }
    }

    /// What the device is to be told of its user's values; nil: it knows.
    mutating func news(in reply: Mss_Bus_V1_SessionReply) -> ([Mss_Bus_V1_Parameter], refused: [String])? {
        let parameters = reply.userParameters.sorted { ($0.bizType, $0.name) < ($1.bizType, $1.name) }
        guard parameters != told || reply.refusedFilters != toldRefused else { return nil }
        (told, toldRefused) = (parameters, reply.refusedFilters)
        return (parameters, reply.refusedFilters)
    }

    /// Another user is bound, of whom the device knows nothing.
    mutating func forgetUser() {
        (told, toldRefused, isKeeping) = ([], [], false)
    }
}
