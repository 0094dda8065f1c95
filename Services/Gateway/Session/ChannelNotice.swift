import BusMessages
import SyncModel

/// New oplogs of one channel, from the oplog writer: they continue `after` and end with `upto`.
struct ChannelNotice: Sendable {
    let channelID: Int64
    let address: ChannelAddress
    let after: OplogID
    let upto: OplogID
    let entries: [Oplog]
    /// The only device that the entries of a single-device channel are for.
    let owner: DeviceID?
    /// The correlation of the writer's request for the outcome; 0: it does not wait for one.
    let correlation: UInt64

    /// Fails for a kind of channel that this build does not know.
    init?(bus: Mss_Bus_V1_OplogNotice) {
        guard let target = TargetAddress(bus: bus.target) else { return nil }
        channelID = bus.channelID
        address = ChannelAddress(target: target, bizType: BizType(bus.bizType))
        after = OplogID(bus.after)
        upto = OplogID(bus.upto)
        entries = bus.entries.map(Oplog.init(bus:))
        owner = bus.ownerDeviceID.isEmpty ? nil : DeviceID(bus.ownerDeviceID)
        correlation = bus.correlation
    }

    /// A notice with the head only, from the sweep.
    init(channelID: Int64, address: ChannelAddress, head: OplogID) {
        self.init(channelID: channelID, address: address, after: head, upto: head, entries: [])
    }

    init(
        channelID: Int64, address: ChannelAddress, after: OplogID, upto: OplogID, entries: [Oplog],
        owner: DeviceID? = nil
    ) {
        self.channelID = channelID
        self.address = address
        self.after = after
        self.upto = upto
        self.entries = entries
        self.owner = owner
        correlation = 0
    }
}
