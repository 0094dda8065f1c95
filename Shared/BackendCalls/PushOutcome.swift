package import SyncModel

/// What became of a push that was handed to the store.
package enum PushOutcome: Hashable, Sendable {
    /// Committed under this id; `online` when it was handed towards an eligible device.
    case stored(OplogID, online: Bool)
    /// Committed under this id, and its validity had ended by the database's clock: no device receives it.
    case ended(OplogID)
    /// The same thirdMsgId was stored before, under this id.
    case duplicate(OplogID)
    /// The store will not have it, for the reason given to the caller.
    case refused(String)
    /// The configuration has gone offline, or is deleted, meanwhile; nothing was stored.
    case noConfiguration
    /// It never left this process.
    case notAttempted
    /// It may or may not be stored: only a repeat with the same thirdMsgId finds out.
    case unknown
}
