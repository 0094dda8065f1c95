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
        // Filled first and then set: each access within the fact would copy it.
        var told = Mss_Bus_V1_HandedOut()
        told.deviceID = identity.deviceID.text
        told.oplogIds = batch.oplogs.map(\.value)
        told.operatingSystem = Mss_Bus_V1_OperatingSystem(identity.traits.operatingSystem)
        told.appVersion = identity.traits.countedVersion
        // Of any other channel the target says whose it is.
        let kind = SyncModel.ChannelKind(wire: batch.batch.kind)
        if kind == .globalUser { told.userID = identity.userID?.text ?? "" }
        handedOut = told
    }
}
