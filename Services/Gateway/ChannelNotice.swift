import BusMessages
import SyncModel

/// A step of one channel, as the oplog writer tells it: from after to upto, with what was added.
struct ChannelNotice: Sendable {
    let channelID: Int64
    let address: ChannelAddress
    let after: OplogID
    let upto: OplogID
    let entries: [Oplog]
    /// Of a single-device channel: the only device that the entries are for.
    let owner: DeviceID?
    /// The number under which the writer waits for what was taken; 0: it does not wait.
    let correlation: UInt64

    /// Nil for a kind of channel that this build does not know.
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

    /// Only that the channel reaches this far: the sweep's finding.
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
