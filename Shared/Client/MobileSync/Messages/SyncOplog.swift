import SyncModel

/// One push, as the app receives it.
public struct SyncOplog: Sendable, Hashable {
    /// The Sync ID of the push.
    public let bizType: String
    /// The oplog id, below 2^53. It rises within its channel in the order of the backend's calls.
    public let oplogID: Int64
    /// The payload: UTF-8 text, or bytes when `isBinary`. Empty for a tombstone (`recalls`).
    public let payload: [UInt8]
    /// Whether the backend sent bytes instead of text.
    public let isBinary: Bool
    /// The backend's own id of the push; nil when it is not known.
    public let thirdMessageID: String?
    /// The conversation that the backend named; nil for none.
    public let conversation: String?
    /// The time when the service accepted the push, in milliseconds since 1970.
    public let createdAt: Int64
    /// The user of the data; nil for device data.
    public let userID: String?
    /// The id of an earlier oplog of this channel that the backend has recalled. The app must undo that oplog. Nil for
    /// data.
    public let recalls: Int64?
    /// Whether the app may have had this oplog before, also confirmed. An operator or the app requested it again, or
    /// the local store is an older copy of itself (`SyncEvent.storeRolledBack`).
    public let isReplay: Bool
    /// The channel's row in the local store. A confirmation uses it.
    let channelRow: Int64
    /// The counts of the resend ladder, this hand-out included.
    let state: ResendLadder.State

    /// The number of hand-outs to the app, this one included: 1, or more when the app did not confirm in time.
    public var attempt: Int { state.handOuts }
    /// The payload as text; nil for binary data.
    public var text: String? { isBinary ? nil : String(decoding: payload, as: UTF8.self) }
}
