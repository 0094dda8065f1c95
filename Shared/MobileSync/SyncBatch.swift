/// Oplogs of one channel that the app gets together, in ascending id.
public struct SyncBatch: Sendable, Hashable {
    /// At least one.
    public let oplogs: [SyncOplog]
    /// Another batch of the same channel is there already.
    public let hasMore: Bool

    /// The Sync ID of all of them.
    public var bizType: String { oplogs[0].bizType }
    /// The user they are for; nil for device data.
    public var userID: String? { oplogs[0].userID }
}
