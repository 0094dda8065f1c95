/// A piece of a list: a channel's oplogs, newest first.
public struct SyncHistory: Sendable, Hashable {
    /// Confirmed or not, as many as were asked for or fewer at the end; ask on with the last one's id.
    public let oplogs: [SyncOplog]
    /// There may be older ones.
    public let hasMore: Bool
    /// The gateway was asked for what is not here; false: it could not be, and oplogs may be lacking in between.
    public let isComplete: Bool
}
