/// One part of a channel's history, newest oplog first.
public struct SyncHistory: Sendable, Hashable {
    /// The oplogs, confirmed or not. Fewer than requested only at the end of the history, or without the gateway. Pass
    /// the last id as `before` to read older ones.
    public let oplogs: [SyncOplog]
    /// Whether older oplogs can exist.
    public let hasMore: Bool
    /// Whether the result is without gaps. False when the gateway did not answer and the local store lacks oplogs.
    public let isComplete: Bool
}
