import DeviceProtocol
import SwiftProtobuf
import SyncModel

/// The outcome of a push frame in the local store.
struct StoreOutcome {
    /// The positions to acknowledge, one for each channel.
    private(set) var acknowledgements: [Mss_Device_V1_StoredUpto] = []
    /// The numbers of re-reads to acknowledge.
    var rereads: [UInt64] = []
    /// The rows of the channels with new oplogs for the app.
    var filledChannels: Set<Int64> = []
    /// Whether the app has a new result of an operation to read.
    var hasResults = false
    /// Whether there is something new to report to the gateway.
    var hasReports = false
    /// The store is full, and nothing of the frame is stored.
    var isFull = false
    /// A batch contained data that this store had acknowledged before: the store is an older copy of itself.
    var isRolledBack = false
    /// A batch began above its channel's position and was left out.
    var foundGap = false

    /// Adds a channel's position, and replaces an earlier one.
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
