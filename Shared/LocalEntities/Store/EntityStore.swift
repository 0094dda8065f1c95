import Foundation
import GRDB
public import MobileSync
import Synchronization

/// Typed records in one SQLite file: fed by oplogs and changed by the app, whose changes go up (spec, two-way §2).
///
/// All calls may be made from any task; each is on the disk when it returns. Errors are `EntityError`.
public final class EntityStore: Sendable {
    /// Shortest limit of a store's size in bytes.
    private static let leastLimit = 1_000_000

    let database: EntityDatabase
    let events: EventQueue
    let handler: any EntityHandler
    private let submitter: any OperationSubmitter
    private let turn = SubmissionTurn()
    private let gauge: Mutex<StorageGauge>
    /// What `beginSynchronize` was last given.
    let synchronization = Mutex(SynchronizationRequest())
    private let clock: @Sendable () -> Date
    /// Ids of rows that never leave the device.
    public let localKeys: LocalKeyGenerator
    /// Whose data it holds; empty: the device's.
    public let userID: String

    /// Opens or creates the store, and brings its tables to the schema.
    ///
    /// - Parameter submitter: what takes operations up; call `start()` once it can.
    /// - Throws: `EntityError`: `persistence`, also for a declaration that has changed so that rows which are there
    ///   cannot follow; `storeKey`, `foreignStore`, `invalidArgument`.
    public init(_ configuration: EntityStoreConfiguration, submitter: any OperationSubmitter) throws(EntityError) {
        guard configuration.storeLimit >= Self.leastLimit else {
            throw EntityError(.invalidArgument, "storeLimit takes at least \(Self.leastLimit) bytes")
        }
        database = try EntityDatabase(
            path: configuration.path, schema: configuration.schema, userID: configuration.userID,
            key: configuration.encryptionKey, limit: configuration.storeLimit)
        handler = configuration.handler
        events = EventQueue(handler: configuration.handler)
        self.submitter = submitter
        gauge = Mutex(StorageGauge(limit: configuration.storeLimit))
        clock = configuration.clock
        localKeys = LocalKeyGenerator(database: database)
        userID = configuration.userID
        try write("forgetting what is old") { transaction in
            try transaction.step("forgetting what is old") { try transaction.prune() }
        }
    }

    /// The entity types.
    public var schema: EntitySchema { database.schema }
    /// The file was damaged beyond reading when this store was opened; it stands beside the new one, with `.damaged` at
    /// the end. `EntitySynchroniser.reset` brings back what the server has.
    public var replacedDamagedStore: Bool { database.replacedDamaged }

    // MARK: Access

    /// Reads.
    func read<Value>(
        _ step: String, _ body: (EntityTransaction) throws -> Value
    ) throws(EntityError) -> Value {
        try database.turn(step) { db, cipher in
            let transaction = EntityTransaction(db, cipher: cipher, store: database, clock: clock)
            defer { transaction.end() }
            return try body(transaction)
        }
    }

    /// Changes in one transaction, then tells the handler.
    func write<Value>(
        _ step: String, _ body: (EntityTransaction) throws -> Value
    ) throws(EntityError) -> Value {
        defer { events.tell() }
        return try database.turn(step) { db, cipher in
            let value = try attempt(step, db, cipher, body)
            measure(db)
            return value
        }
    }

    private func attempt<Value>(
        _ step: String, _ db: Database, _ cipher: StoreCipher?, _ body: (EntityTransaction) throws -> Value
    ) throws -> Value {
        let transaction = EntityTransaction(db, cipher: cipher, store: database, clock: clock)
        defer { transaction.end() }
        var value: Value?
        do {
            try db.inTransaction(.immediate) {
                value = try body(transaction)
                return .commit
            }
        } catch {
            let error = EntityError.wrapping(error, step)
            if error.isStoreFull { note(gauge.withLock { $0.measured($0.limit) }) }
            throw error
        }
        events.add(transaction.events)
        guard let value else { throw EntityError(.persistence, "a transaction gave nothing") }
        return value
    }

    private func measure(_ db: Database) {
        guard let pages = try? Int.fetchOne(db, sql: "PRAGMA page_count"),
            let free = try? Int.fetchOne(db, sql: "PRAGMA freelist_count"),
            let size = try? Int.fetchOne(db, sql: "PRAGMA page_size")
        else { return }
        note(gauge.withLock { $0.measured((pages - free) * size) })
    }

    private func note(_ change: StorageGauge.Change) {
        switch change {
        case .none: break
        case .low: events.add([.storageSpaceLow])
        case .recovered: events.add([.storageSpaceRecovered])
        }
    }

    /// Does several changes together: all of them when the body returns, none when it throws. Other callers wait
    /// meanwhile; inside, only the transaction's own calls are to be made, and what it gives cannot be used later.
    ///
    /// Values that were passed `inout` keep what a transaction that was rolled back has put into them: refresh them.
    ///
    /// - Throws: What the body throws, `EntityError.persistence`.
    public func transaction<Value>(_ body: (EntityTransaction) throws -> Value) throws -> Value {
        var failure: (any Error)?
        do {
            return try write("a transaction") { transaction in
                do {
                    let value = try body(transaction)
                    transaction.events.append(.transactionCommitted)
                    return value
                } catch {
                    failure = error
                    throw error
                }
            }
        } catch {
            events.add([.transactionRolledBack])
            events.tell()
            throw failure ?? error
        }
    }

    // MARK: Sending

    /// Submits again what was marked and may not have reached the submitter, as after a crash. To be called once after
    /// opening, with the user bound; a submitter knows operations by their ids.
    ///
    /// - Throws: `EntityError.submission`, `persistence`.
    public func start() async throws(EntityError) {
        try write("starting") { transaction in
            try transaction.step("starting") { try transaction.markAllUnsent() }
        }
        try await send()
    }

    /// Gives the submitter what is marked, and takes back what was cancelled, in order.
    func send() async throws(EntityError) {
        await turn.enter()
        do throws(EntityError) {
            try await takeBack()
            try await sendUnsent()
            await turn.leave()
        } catch {
            await turn.leave()
            throw error
        }
    }

    private func sendUnsent() async throws(EntityError) {
        while true {
            let operations = try read("reading what is to be sent") { transaction in
                try transaction.step("reading what is to be sent") {
                    try transaction.unsent(limit: EntityLimits.submissionsAtOnce)
                }
            }
            guard !operations.isEmpty else { return }
            let fitting = operations.filter { $0.fault == nil }
            do {
                if !fitting.isEmpty { try await submitter.submit(fitting, ofUser: ownerID) }
            } catch {
                throw EntityError(
                    .submission, "\(fitting.count) operations wait, as they could not be submitted (\(error))")
            }
            try write("noting what was sent") { transaction in
                try transaction.step("noting what was sent") { try transaction.markSent(fitting.map(\.id)) }
                for operation in operations {
                    if let fault = operation.fault { try transaction.take(refusal(of: operation, fault)) }
                }
            }
        }
    }

    /// Whose operations go up from here; nil: of whoever is signed in.
    var ownerID: String? { userID.isEmpty ? nil : userID }

    /// The answer to an operation that no server takes, such as one that is too large.
    private func refusal(of operation: SyncOperation, _ fault: String) -> SyncOperationResult {
        SyncOperationResult(
            operationID: operation.id, component: operation.component, key: operation.key, name: operation.name,
            isAccepted: false, code: 400, level: LogLevel.error.rawValue, message: fault, requestID: "", at: clock(),
            imported: nil)
    }

    private func takeBack() async throws(EntityError) {
        let roots = try read("reading what was cancelled") { transaction in
            try transaction.step("reading what was cancelled") { try transaction.cancelledRoots() }
        }
        guard !roots.isEmpty else { return }
        let taken: [String]
        do {
            taken = try await submitter.cancelOperations(roots, ofUser: ownerID)
        } catch {
            throw EntityError(.submission, "\(roots.count) operations could not be taken back (\(error))")
        }
        try write("noting what was taken back") { transaction in
            try transaction.step("noting what was taken back") {
                try transaction.dropRoots(taken.filter(roots.contains))
                try transaction.keepRoots(roots)
            }
        }
    }

    // MARK: Receiving

    /// Takes an answer of the server's; durable when this returns, and then to be confirmed to whom it came from. One
    /// that is known changes nothing.
    ///
    /// - Throws: `EntityError.persistence`: the answer is to come again. `submission`: it is taken, and what was
    ///   submitted meanwhile goes later.
    public func result(_ result: SyncOperationResult) async throws(EntityError) {
        try write("taking an answer") { try $0.take(result) }
        try await send()
    }

    /// Takes payloads of an entity type's Sync ID, in their order, in one transaction. What cannot be understood is
    /// noted in a log record and passed over.
    ///
    /// - Throws: `EntityError.persistence`: nothing was taken; `noSuchClass`.
    public func importOplogs(_ payloads: [[UInt8]], of typeName: String) throws(EntityError) {
        _ = try schema.type(typeName)
        try write("taking imports") { transaction in
            for payload in payloads { try transaction.importPayload(payload, of: typeName) }
            transaction.events.append(.importSucceeded)
        }
    }

    /// Tells the handler of a connection's state: what only the app knows, such as flight mode.
    public func connectionStatusChanged(to status: EntityConnectionStatus, reason: String = "") {
        tell(.connectionStatusChanged(status, reason: reason))
    }

    /// Tells the handler of something that was no transaction.
    func tell(_ event: EntityEvent) {
        events.add([event])
        events.tell()
    }

    // MARK: Key

    /// Seals everything anew with another key, in one transaction; nil: readable for everybody.
    ///
    /// - Throws: `EntityError.invalidArgument` unless the key has 32 bytes, `persistence`; the former key counts then.
    public func changeEncryptionKey(to key: [UInt8]?) throws(EntityError) {
        try database.change(to: try key.map { key throws(EntityError) in try StoreCipher(entityKey: key) })
    }
}
