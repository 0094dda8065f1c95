import DeviceProtocol
import SyncModel

/// A batch that was handed out and is not written yet: it waits for others, to travel in one frame with them (spec D5),
/// or for the connection to take it.
struct GatheredBatch {
    let batch: Mss_Device_V1_ChannelBatch
    /// What of it are pushes.
    let oplogs: [OplogID]
    let channelID: Int64

    /// What it takes in a frame, at the most.
    var bytes: Int { batch.entries.reduce(64) { $0 + $1.payload.count + 128 } }

    /// The same with what is left of the batch.
    func with(_ left: Mss_Device_V1_ChannelBatch) -> GatheredBatch {
        guard left.entries.count < batch.entries.count else { return self }
        let ids = Set(left.entries.map(\.oplogID))
        return GatheredBatch(batch: left, oplogs: oplogs.filter { ids.contains($0.value) }, channelID: channelID)
    }

    /// Without what has ended since it was handed out; the batch moves the device's position all the same.
    func withoutExpired(at now: WallTime) -> (left: GatheredBatch, expired: [OplogID]) {
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
