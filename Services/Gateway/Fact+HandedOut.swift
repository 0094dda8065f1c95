import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel

extension Mss_Bus_V1_Fact {
    /// What statistics are told of a batch that went out; nil when no push is in it.
    init?(handedOut batch: GatheredBatch, to identity: SessionIdentity, at time: WallTime) {
        guard !batch.oplogs.isEmpty else { return nil }
        self.init()
        atMs = time.milliseconds
        channelID = batch.channelID
        handedOut.deviceID = identity.deviceID.text
        handedOut.oplogIds = batch.oplogs.map(\.value)
        handedOut.operatingSystem = Mss_Bus_V1_OperatingSystem(identity.traits.operatingSystem)
        handedOut.appVersion = identity.traits.countedVersion
        // Of any other channel the target says whose it is.
        let kind = SyncModel.ChannelKind(wire: batch.batch.kind)
        if kind == .globalUser { handedOut.userID = identity.userID?.text ?? "" }
    }
}
