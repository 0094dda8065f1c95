public import Foundation

/// What an entity store is opened with.
public struct EntityStoreConfiguration: Sendable {
    /// The SQLite file; created when it is missing, in a folder that exists.
    public var path: String
    /// The entity types.
    public var schema: EntitySchema
    /// Whose data it holds; one file for each user. Empty, the default: the device's.
    public var userID: String
    /// Seals attributes: 32 bytes, from the system's key chain or a `KeyVault`. Nil, the default: they are readable. A
    /// store that was not encrypted is when it is opened with a key.
    public var encryptionKey: [UInt8]?
    /// Bytes that the file may take, 1 MB or more; 100 MB by default. What would need more is refused.
    public var storeLimit: Int
    /// What an app is told; by default nothing.
    public var handler: any EntityHandler
    /// The device's clock.
    public var clock: @Sendable () -> Date

    /// A configuration with the defaults of everything that is optional.
    public init(
        path: String, schema: EntitySchema, userID: String = "", encryptionKey: [UInt8]? = nil,
        storeLimit: Int = 100_000_000, handler: (any EntityHandler)? = nil,
        clock: @escaping @Sendable () -> Date = { Date() }
    ) {
        self.path = path
        self.schema = schema
        self.userID = userID
        self.encryptionKey = encryptionKey
        self.storeLimit = storeLimit
        self.handler = handler ?? SilentHandler()
        self.clock = clock
    }
}
