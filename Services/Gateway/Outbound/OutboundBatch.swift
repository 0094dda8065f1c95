import DeviceProtocol
import SyncModel

/// A batch that was handed out and is not written yet. It waits for other batches of the same frame (D5), or for free
/// capacity of the connection.
struct OutboundBatch {
    let batch: Mss_Device_V1_ChannelBatch
    /// The pushes of the batch, without tombstones.
    let oplogs: [OplogID]
    let channelID: Int64

    /// An upper bound of its size in a frame, in bytes.
    var bytes: Int {
        batch.entries.reduce(64) {
            $0 + $1.payload.count + $1.thirdMessageID.utf8.count + $1.conversation.utf8.count + 128
        }
    }

    /// Whether the batch belongs to a bind. Data of another user is dropped. It was not stored, so it is sent again when
    /// that user is bound.
    func isOf(bind: UInt32) -> Bool { batch.bindNumber == 0 || batch.bindNumber == bind }

    /// The same batch with fewer entries.
    func with(_ left: Mss_Device_V1_ChannelBatch) -> OutboundBatch {
        guard left.entries.count < batch.entries.count else { return self }
        let ids = Set(left.entries.map(\.oplogID))
        return OutboundBatch(batch: left, oplogs: oplogs.filter { ids.contains($0.value) }, channelID: channelID)
    }

    /// The batch without expired entries. It still moves the device's position.
    func withoutExpired(at now: WallTime) -> (left: OutboundBatch, expired: [OplogID]) {
        func hasEnded(_ entry: Mss_Device_V1_Entry) -> Bool {
            entry.validUntilMs > 0 && entry.validUntilMs <= now.milliseconds
        }
        let expired = batch.entries.filter(hasEnded).map { OplogID($0.oplogID) }
        guard !expired.isEmpty else { return (self, []) }
        var left = batch
        left.entries.removeAll(where: hasEnded)
        return (with(left), expired)
    }
}
