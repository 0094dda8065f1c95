/// A channel as a load run's device keeps it: the position, and what is still to be said to the gateway.
struct DeviceChannel: Sendable {
    /// `ChannelKind` of the wire.
    let kind: UInt64
    let bizType: [UInt8]
    var bindNumber: UInt64 = 0
    /// Everything up to here was received.
    var position: Int64 = 0
    /// The newest id that came, on any connection.
    var lastOplogID: Int64 = 0
    /// The position has moved since it was acknowledged.
    var isUnacknowledged = false
    /// Ids that the app has processed and the gateway has not been told of.
    var unreported: [Int64] = []
    /// Ids in the report under way.
    var reporting: [Int64] = []

    /// Whether the channel is this one.
    func isNamed(kind: UInt64, _ bizType: UnsafeRawBufferPointer) -> Bool {
        kind == self.kind && bizType.count == self.bizType.count && bizType.elementsEqual(self.bizType)
    }
}
