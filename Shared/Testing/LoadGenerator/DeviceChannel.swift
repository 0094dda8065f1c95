/// A channel in a load device: the position, and the data for the next acknowledgement and report.
struct DeviceChannel: Sendable {
    /// `ChannelKind` of the protocol.
    let kind: UInt64
    let bizType: [UInt8]
    var bindNumber: UInt64 = 0
    /// Every oplog up to this id was received.
    var position: Int64 = 0
    /// The newest id that was received, on any connection.
    var lastOplogID: Int64 = 0
    /// The position has moved since the last acknowledgement.
    var isUnacknowledged = false
    /// Ids that the app has processed and the device has not reported.
    var unreported: [Int64] = []
    /// Ids of the report in flight.
    var reporting: [Int64] = []

    /// Whether kind and Sync ID match the channel.
    func isNamed(kind: UInt64, _ bizType: UnsafeRawBufferPointer) -> Bool {
        kind == self.kind && bizType.count == self.bizType.count && bizType.elementsEqual(self.bizType)
    }
}
