import DeviceProtocol
import SyncModel

/// A batch that was handed out and is not written yet: it waits for others, to travel in one frame with them (spec D5).
struct GatheredBatch {
    let batch: Mss_Device_V1_ChannelBatch
    /// What of it are pushes.
    let oplogs: [OplogID]
    let channelID: Int64
}
