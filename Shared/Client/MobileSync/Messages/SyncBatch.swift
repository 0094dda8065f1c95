/// Oplogs of one channel in ascending order of their ids.
public struct SyncBatch: Sendable, Hashable {
    /// The oplogs, at least one.
    public let oplogs: [SyncOplog]
    /// Whether the local store already has more oplogs of this channel for the app.
    public let hasMore: Bool

    /// The Sync ID of all oplogs in the batch.
    public var bizType: String { oplogs[0].bizType }
    /// The user of the data; nil for device data.
    public var userID: String? { oplogs[0].userID }
}
