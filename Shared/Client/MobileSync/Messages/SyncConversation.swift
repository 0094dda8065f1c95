/// The state of one conversation of a Sync ID, for a list screen.
public struct SyncConversation: Sendable, Hashable {
    /// The Sync ID.
    public let bizType: String
    /// The name that the backend gives it.
    public let name: String
    /// The newest oplog on the device or on the server.
    public let last: SyncOplog
    /// The number of oplogs on the device above the last call of `markRead`.
    public let unread: Int
    /// The number of oplogs on the server above this receiver's sync point, at most 1,000. The value is nil when the
    /// gateway did not answer, or refused.
    public let notReceived: Int?
}

extension SyncConversation {
    /// The conversation after the gateway's complete answer. The server has no valid oplog of a conversation that it
    /// did not list.
    var withAnswer: Self {
        Self(bizType: bizType, name: name, last: last, unread: unread, notReceived: notReceived ?? 0)
    }
}
