/// The local part of a channel's history, and the place where the server must continue.
struct LocalHistory: Sendable {
    /// The newest oplogs up to the first gap.
    var oplogs: [SyncOplog]
    /// All stored oplogs, possibly with gaps. They are used when the gateway does not reply.
    var allStored: [SyncOplog]
    /// The server has older oplogs below this id. 0: read from the newest; nil: the server has none.
    var requestBefore: Int64?
    /// The bound user at the time of the read.
    var userID: String?
}
