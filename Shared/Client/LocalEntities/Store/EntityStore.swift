import Concurrency
public import MobileSync

/// Stores typed records in one SQLite file. Oplogs update them, the app changes them, and the changes are sent to the
/// server (ENT1).
///
/// All calls can be made from any task. A change is on disk when its call returns. The errors are `EntityError`.
public final class EntityStore: EntityReader, Sendable {
    /// The smallest limit of a store's size, in bytes.
    private static let leastLimit = 1_000_000

    let database: EntityDatabase
    let transactions: TransactionRunner
    let sender: OperationSender
    let handler: any EntityHandler
    /// The arguments of the last `beginSynchronize`.
    let synchronization = LockedValue(SynchronizationRequest())
    /// Held while a key generator of this store requests keys from the server.
    let keyRequests = AsyncLock()
    /// Generates keys on the device: numbers for rows that stay on the device, and GUIDs for all rows.
    public let localKeys: LocalKeyGenerator
    /// The user of the data; empty: the device.
    public let userID: String
    /// Whether a user is the store's. Two spellings of one character are two users.
    func isOf(_ userID: String) -> Bool { userID.utf8.elementsEqual(self.userID.utf8) }

    /// Opens or creates the store and updates its tables to the schema.
    ///
    /// - Parameter submitter: sends operations to the server, usually the app's `SyncClient`. Call `start()` when it is
    ///   ready.
    /// - Throws: `EntityError`: `persistence`, also when the declaration has changed in a way that the stored rows do
    ///   not allow; `storeKey`, `foreignStore`, `invalidArgument`.
    public init(_ configuration: EntityStoreConfiguration, submitter: any OperationSubmitter) throws(EntityError) {
        guard configuration.storeLimit >= Self.leastLimit else {
            throw EntityError(.invalidArgument, "storeLimit must be at least \(Self.leastLimit) bytes")
        }
        database = try EntityDatabase(
            path: configuration.path, schema: configuration.schema, userID: configuration.userID,
            key: configuration.encryptionKey, limit: configuration.storeLimit)
        handler = configuration.handler
        localKeys = LocalKeyGenerator(database: database)
        userID = configuration.userID
        transactions = TransactionRunner(
            database: database, limit: configuration.storeLimit, handler: configuration.handler,
            clock: configuration.clock, resolver: configuration.resolveConflict)
        sender = OperationSender(
            transactions: transactions, submitter: submitter, userID: userID.isEmpty ? nil : userID,
            clock: configuration.clock)
        try write("deleting old entries") { try $0.prune() }
    }

    /// The entity types.
    public var schema: EntitySchema { database.schema }
    /// Whether SQLite could not read the file at opening. The damaged file was then renamed with the suffix `.damaged`,
    /// and the store started empty. `EntitySynchroniser.reset` loads the server's rows again.
    public var replacedDamagedStore: Bool { database.replacedDamaged }

    // MARK: Access

    /// Reads from a snapshot.
    func read<Value>(
        _ step: String, _ body: (EntitySnapshot) throws -> Value
    ) throws(EntityError) -> Value { try transactions.read(step, body) }

    public func snapshot<Value>(_ body: (EntitySnapshot) throws -> Value) throws(EntityError) -> Value {
        try read("reading", body)
    }

    /// Reads several things from one snapshot, without a wait of the caller's thread. The body runs on a thread of the
    /// store, beside writers and other readers, and sees every change that was committed before. It must use only the
    /// snapshot's calls, and must not keep the snapshot.
    ///
    /// The other reading calls block their thread while SQLite reads. On the main thread, prefer this call or
    /// `observe`.
    ///
    /// - Throws: the errors of the body, if they are `EntityError`; `EntityError.persistence`; `CancellationError`.
    public func read<Value: Sendable>(
        _ body: @escaping @Sendable (EntitySnapshot) throws -> Value
    ) async throws -> Value { try await transactions.readAsynchronously("reading", body) }

    /// Executes one transaction, then delivers its events to the handler.
    func write<Value>(
        _ step: String, _ body: (EntityTransaction) throws -> Value
    ) throws(EntityError) -> Value { try transactions.write(step, body) }

    /// Executes several changes in one transaction: all are stored when the body returns, and none when it throws.
    /// Other callers wait meanwhile. The body must use only the transaction's calls, and must not keep the transaction.
    ///
    /// After a rollback, values that were passed `inout` keep their changes in memory; refresh them.
    ///
    /// - Throws: the errors of the body; `EntityError.persistence`.
    public func transaction<Value>(_ body: (EntityTransaction) throws -> Value) throws -> Value {
        var failure: (any Error)?
        do {
            return try write("a transaction") { transaction in
                do {
                    let value = try body(transaction)
                    transaction.context.record(.transactionCommitted)
                    return value
                } catch {
                    failure = error
                    throw error
                }
            }
        } catch {
            notify(.transactionRolledBack)
            throw failure ?? error
        }
    }

    // MARK: Sending

    /// Submits operations again that may not have reached the submitter, for example after a crash. Call it once after
    /// opening, when the user is bound. The submitter ignores operations that it already has.
    ///
    /// - Throws: `EntityError.submission`, `persistence`.
    public func start() async throws(EntityError) {
        try write("starting") { try $0.operations.markAllUnsent() }
        try await sender.send()
    }

    // MARK: Receiving

    /// Applies a result of the server. The change is on disk when the call returns; confirm the result then. A repeated
    /// result changes nothing.
    ///
    /// - Throws: `EntityError`: `persistence`: the result must be passed again; `submission`: the result is applied,
    ///   and changes that were submitted meanwhile are sent later.
    public func result(_ result: SyncOperationResult) async throws(EntityError) {
        try write("applying a result") { try $0.results.apply(result) }
        try await sender.send()
    }

    /// Imports payloads of an entity type's Sync ID, in order and in one transaction. An invalid payload is recorded as
    /// a log record and skipped.
    ///
    /// - Throws: `EntityError`: `persistence`: nothing was imported; `noSuchClass`.
    public func importOplogs(_ payloads: [[UInt8]], of typeName: String) throws(EntityError) {
        _ = try schema.type(typeName)
        try write("importing oplogs") { transaction in
            for payload in payloads {
                try transaction.step("importing an oplog") {
                    try transaction.importer.apply(payload: payload, of: typeName)
                }
            }
            transaction.context.record(.importSucceeded)
        }
    }

    /// Reports a state of the connection to the handler, for states that only the app knows, such as flight mode.
    public func connectionStatusChanged(to status: EntityConnectionStatus, reason: String = "") {
        notify(.connectionStatusChanged(status, reason: reason))
    }

    /// Delivers an event that belongs to no transaction.
    func notify(_ event: EntityEvent) { transactions.notify(event) }

    // MARK: Key

    /// Encrypts everything with another key in one transaction; nil: decrypts it.
    ///
    /// - Throws: `EntityError`: `invalidArgument` unless the key has 32 bytes; `persistence`. The former key stays
    ///   valid then.
    public func changeEncryptionKey(to key: [UInt8]?) throws(EntityError) {
        try database.change(to: try key.map { key throws(EntityError) in try StoreCipher(entityKey: key) })
    }
}
