public import Foundation

/// The configuration of an entity store.
public struct EntityStoreConfiguration: Sendable {
    /// The path of the SQLite file. The file is created when it is missing; its folder must exist.
    public var path: String
    /// The entity types.
    public var schema: EntitySchema
    /// The user of the data; each user needs a file of their own. Empty, the default: the device.
    public var userID: String
    /// The key that encrypts attributes: 32 bytes, from the system's key chain or a `KeyVault`. Nil, the default:
    /// attributes are not encrypted. A store that was not encrypted is encrypted when it is opened with a key.
    public var encryptionKey: [UInt8]?
    /// The largest size of the file in bytes; at least 1 MB, by default 100 MB. A change that needs more is refused.
    public var storeLimit: Int
    /// Receives the store's events; by default none.
    public var handler: any EntityHandler
    /// Decides about an edit of a row that has changed on the server, with the base, my and their version. Nil, the
    /// default: the edit stays, is sent with the counter of its base, and the server decides.
    ///
    /// The store calls it when a new version arrives while a change is pending, and when the server refuses a change
    /// that was in flight meanwhile. It runs inside a transaction, so it must not call the store. An error leaves the
    /// edit as it is, with a log record. A change that was refused is submitted again after the decision.
    public var resolveConflict: EntityConflict.Resolver?
    /// The clock of the device.
    public var clock: @Sendable () -> Date

    /// Makes a configuration; optional arguments have defaults.
    public init(
        path: String, schema: EntitySchema, userID: String = "", encryptionKey: [UInt8]? = nil,
        storeLimit: Int = 100_000_000, handler: (any EntityHandler)? = nil,
        resolveConflict: EntityConflict.Resolver? = nil,
        clock: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.path = path
        self.schema = schema
        self.userID = userID
        self.encryptionKey = encryptionKey
        self.storeLimit = storeLimit
        self.handler = handler ?? SilentHandler()
        self.resolveConflict = resolveConflict
        self.clock = clock
    }
}
