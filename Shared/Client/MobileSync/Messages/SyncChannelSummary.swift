/// The state of one channel, for a list screen.
public struct SyncChannelSummary: Sendable, Hashable {
    /// The Sync ID.
    public let bizType: String
    /// The user of the channel; nil for device data.
    public let userID: String?
    /// The newest oplog on the device or on the server; nil when there is none.
    public let last: SyncOplog?
    /// The number of oplogs on the device that the app has not confirmed.
    public let unconfirmed: Int
    /// The number of oplogs on the server above this receiver's sync point, at most 1,000. The value is nil when the
    /// gateway did not
    /// answer.
    public let notReceived: Int?
}
