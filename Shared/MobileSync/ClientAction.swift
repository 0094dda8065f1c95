import DeviceProtocol

/// What a connection's rules want done; performed in order.
enum ClientAction: Hashable, Sendable {
    /// Write a frame.
    case send(Mss_Device_V1_Packet)
    /// Store the batches in one transaction, then tell the machine what is stored. User channels are this user's.
    case store([Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32)
    /// Look for confirmations that the gateway has not recorded: of device channels, and of this user.
    case collectConfirmed(userID: String?, bindNumber: UInt32)
    /// The gateway has recorded these: forget them.
    case forget([Mss_Device_V1_ConfirmedOplogs], userID: String?)
    /// The gateway has greeted.
    case connected
    /// Tell the app.
    case notify(SyncEvent)
    /// The connection is over.
    case end(ConnectionEnd)
}
