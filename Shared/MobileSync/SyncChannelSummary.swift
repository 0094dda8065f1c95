/// Where one channel stands, for a list screen.
public struct SyncChannelSummary: Sendable, Hashable {
    /// The Sync ID.
    public let bizType: String
    /// The user it is of; nil: the device's.
    public let userID: String?
    /// The newest oplog, here or on the server; nil: there is none.
    public let last: SyncOplog?
    /// Oplogs that are here and not confirmed.
    public let unconfirmed: Int
    /// Oplogs that the server has above this receiver's sync point, counted to 1,000; nil: it could not be asked.
    public let notReceived: Int?
}
