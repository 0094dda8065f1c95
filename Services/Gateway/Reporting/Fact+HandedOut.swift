import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

extension Mss_Bus_V1_Fact {
    /// The statistics fact of a batch that was written; nil: the batch has no push.
    init?(handedOut batch: OutboundBatch, to identity: SessionIdentity, at time: WallTime) {
        guard !batch.oplogs.isEmpty else { return nil }
        self.init()
        atMs = time.milliseconds
        channelID = batch.channelID
        // Filled first and then assigned, because each access within the fact would copy it.
        var content = Mss_Bus_V1_HandedOut()
        content.deviceID = identity.deviceID.text
        content.oplogIds = batch.oplogs.map(\.value)
        content.operatingSystem = Mss_Bus_V1_OperatingSystem(identity.traits.operatingSystem)
        content.appVersion = identity.traits.countedVersion
        // For other kinds of channels the target names the user.
        let kind = SyncModel.ChannelKind(wire: batch.batch.kind)
        if kind == .globalUser { content.userID = identity.userID?.text ?? "" }
        handedOut = content
    }
}
