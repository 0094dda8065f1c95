/// The newest oplogs of a Sync ID on the device, for screens.
public struct SyncOplogList: Sendable, Hashable {
    /// One oplog of the list.
    public struct Item: Sendable, Hashable {
        public let oplog: SyncOplog
        /// Whether the app has confirmed the oplog, or it was read only for a list.
        public let isConfirmed: Bool
    }

    /// The oplogs, newest first, without recalled ones.
    public let items: [Item]
    /// The number of oplogs on the device that the app has not confirmed, without dead letters.
    public let unconfirmed: Int

    /// Makes a list; the client does.
    public init(items: [Item], unconfirmed: Int) {
        self.items = items
        self.unconfirmed = unconfirmed
    }
}
