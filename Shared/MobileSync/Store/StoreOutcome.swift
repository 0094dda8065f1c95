import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// What became of a push frame in the local store.
struct StoreOutcome {
    /// What may be acknowledged, as one position per channel.
    private(set) var acknowledgements: [Mss_Device_V1_StoredUpto] = []
    /// Numbers of re-reads, which may be acknowledged too.
    var rereads: [UInt64] = []
    /// Rows of the channels that have something new for the app.
    var filledChannels: Set<Int64> = []
    /// The app has a new result of an operation to read.
    var hasResults = false
    /// The gateway is to be told of something that the client itself has taken.
    var hasNews = false
    /// There is no room: nothing of it is stored.
    var isFull = false
    /// A batch brought again what this store had acknowledged before: the store is an older copy of itself.
    var isRolledBack = false
    /// A batch began above its channel's position and was left out.
    var foundGap = false

    /// Notes a channel's position, in place of an earlier one.
    mutating func acknowledge(_ channel: LocalChannel, bindNumber: UInt32) {
        let position = Mss_Device_V1_StoredUpto.with {
            $0.kind = channel.key.kind.wire
            $0.bizType = channel.key.bizType
            $0.bindNumber = channel.key.kind.needsUser ? bindNumber : 0
            $0.upto = channel.position.value
        }
        acknowledgements.removeAll { $0.kind == position.kind && $0.bizType == position.bizType }
        acknowledgements.append(position)
    }
}
