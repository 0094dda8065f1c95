import SyncModel

/// One piece of data for the app.
public struct SyncOplog: Sendable, Hashable {
    /// The Sync ID that it was pushed under.
    public let bizType: String
    /// Rises within its channel in the order of the backend's calls; below 2^53.
    public let oplogID: Int64
    /// The data as bytes: UTF-8 text unless `isBinary`; empty when this recalls another.
    public let payload: [UInt8]
    /// The backend sent bytes, not text.
    public let isBinary: Bool
    /// The backend's own id of the push; nil when it is not known.
    public let thirdMessageID: String?
    /// When the service accepted the push, in milliseconds since 1970.
    public let createdAt: Int64
    /// The user it is for; nil for device data.
    public let userID: String?
    /// The id of an earlier oplog of the same channel that the backend has recalled: undo it. Nil for data.
    public let recalls: Int64?
    /// This app may have had it, even confirmed it, before: somebody had the service send it once more, or the local
    /// store is an older copy of itself (`SyncEvent.storeRolledBack`).
    public let isReplay: Bool
    /// The channel's row in the local store, by which it is confirmed.
    let channelRow: Int64
    /// What it has been through, this hand-out included.
    let state: ResendLadder.State

    /// How often the app has been given it, this time included: 1, or more when it was not confirmed in time.
    public var attempt: Int { state.handOuts }
    /// The payload as text; nil for binary data.
    public var text: String? { isBinary ? nil : String(decoding: payload, as: UTF8.self) }
}
