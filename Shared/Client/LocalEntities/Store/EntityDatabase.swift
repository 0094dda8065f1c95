import Concurrency
import Dispatch
import Foundation
import GRDB
import MobileSync

/// The SQLite file of an entity store and its key.
///
/// One caller at a time writes. Each read has a connection of a pool and a snapshot of its own, so it waits neither for
/// a writer nor for another reader. A change of the key waits for all readers, and readers wait for it.
///
/// `synchronous=FULL`: data that the app has saved or confirmed must survive a power failure.
final class EntityDatabase: Sendable {
    let schema: EntitySchema
    let tables: [String: EntityTable]
    /// Whether SQLite could not read the file. It was then renamed with the suffix `.damaged`.
    let replacedDamaged: Bool
    private let pool: DatabasePool
    private let key: CipherBox
    /// The threads that use a connection now.
    private let turnThreads = LockedValue<Set<ObjectIdentifier>>([])

    /// The current key; it changes only while no connection is used.
    private final class CipherBox: Sendable {
        let cipher = LockedValue<StoreCipher?>(nil)
    }

    /// Opens or creates the file.
    ///
    /// - Parameters:
    ///   - userID: the user of the data; empty: the device.
    ///   - key: 32 bytes; nil: attributes are not encrypted.
    ///   - limit: the largest size of the file, in bytes.
    /// - Throws: `EntityError`: `persistence`, `storeKey`, `foreignStore`, `invalidArgument` for the length of the key.
    init(path: String, schema: EntitySchema, userID: String, key: [UInt8]?, limit: Int) throws(EntityError) {
        self.schema = schema
        tables = Dictionary(uniqueKeysWithValues: schema.types.map { ($0.name, EntityTable($0, in: schema)) })
        let cipher = try key.map { key throws(EntityError) in try StoreCipher(entityKey: key) }
        let box = CipherBox()
        self.key = box
        do {
            (pool, replacedDamaged) = try SQLiteFile.openPool(
                path, label: "local-entities", migrator: EntityStoreSchema.migrator
            ) { db in
                db.add(function: QueryCompiler.openFunction { box.cipher.withLock { $0 } })
                db.add(function: DecimalOrder.sum)
                db.add(collation: DecimalOrder.collation)
                let page = try Int.fetchOne(db, sql: "PRAGMA page_size") ?? 4_096
                try db.execute(sql: "PRAGMA max_page_count = \(max(1, limit / page))")
            }
        } catch {
            throw EntityError.wrapping(error, "opening the store")
        }
        try claim(for: userID)
        try use(cipher)
        try transaction("updating the tables") { db, cipher in
            try TableReconciliation(db: db, schema: schema, cipher: cipher).run()
        }
    }

    // MARK: Access

    /// Executes a step as the only writer, without a transaction.
    ///
    /// - Throws: `EntityError.persistence` with the step's name, also inside another turn or read of this thread; an
    ///   `EntityError` of the body is rethrown.
    func turn<Value>(
        _ step: String, _ body: (Database, StoreCipher?) throws -> Value
    ) throws(EntityError) -> Value {
        try outsideTransaction(step) {
            try pool.writeWithoutTransaction { db in try inTurn { try body(db, cipher) } }
        }
    }

    /// Reads from a snapshot, which has every change that was committed before the call.
    ///
    /// - Throws: as `turn`.
    func read<Value>(
        _ step: String, _ body: (Database, StoreCipher?) throws -> Value
    ) throws(EntityError) -> Value {
        try outsideTransaction(step) { try pool.read { db in try inTurn { try body(db, cipher) } } }
    }

    /// Reads as `read` does, on a thread of the pool. The caller's thread does not wait.
    ///
    /// - Throws: as `turn`; `CancellationError`.
    func readAsynchronously<Value: Sendable>(
        _ step: String, _ body: @escaping @Sendable (Database, StoreCipher?) throws -> Value
    ) async throws -> Value {
        do {
            return try await pool.read { [self] db in try inTurn { try body(db, cipher) } }
        } catch let error as CancellationError {
            throw error
        } catch {
            throw EntityError.wrapping(error, step)
        }
    }

    /// Reads now and after each commit that changes the rows it read, until the result is released. Values that do not
    /// differ from the one before are left out. The caller's thread does not wait.
    ///
    /// - Parameters:
    ///   - fetch: always reads the same tables and columns.
    ///   - onError: called at most once; no value follows.
    ///   - onChange: called with one value at a time, in the order of the commits.
    func observe<Value: Sendable & Equatable>(
        _ fetch: @escaping @Sendable (Database, StoreCipher?) throws -> Value,
        onError: @escaping @Sendable (any Error) -> Void, onChange: @escaping @Sendable (Value) -> Void
    ) -> AnyDatabaseCancellable {
        ValueObservation.trackingConstantRegion { [self] db in try inTurn { try fetch(db, cipher) } }
            .removeDuplicates()
            .start(
                in: pool, scheduling: .async(onQueue: DispatchQueue(label: "local-entities observation")),
                onError: onError, onChange: onChange)
    }

    private var cipher: StoreCipher? { key.cipher.withLock { $0 } }

    private func outsideTransaction<Value>(
        _ step: String, _ body: () throws -> Value
    ) throws(EntityError) -> Value {
        let me = ObjectIdentifier(Thread.current)
        guard !turnThreads.withLock({ $0.contains(me) }) else {
            throw EntityError(
                .persistence,
                "\(step) was called inside a transaction or a read; use the calls of its argument there")
        }
        do {
            return try body()
        } catch {
            throw EntityError.wrapping(error, step)
        }
    }

    /// Executes the body of a transaction or a read. A call of the store inside of it would wait for itself.
    private func inTurn<Value>(_ body: () throws -> Value) rethrows -> Value {
        let me = ObjectIdentifier(Thread.current)
        let isFirst = turnThreads.withLock { $0.insert(me).inserted }
        defer { if isFirst { turnThreads.withLock { _ = $0.remove(me) } } }
        return try body()
    }

    /// Executes a step in one transaction; the change is on disk when the call returns.
    func transaction<Value>(
        _ step: String, _ body: (Database, StoreCipher?) throws -> Value
    ) throws(EntityError) -> Value {
        try turn(step) { db, cipher in
            var value: Value?
            try db.inTransaction(.immediate) {
                value = try body(db, cipher)
                return .commit
            }
            guard let value else { throw EntityError(.persistence, "\(step) returned no value") }
            return value
        }
    }

    // MARK: Opening

    private func claim(for userID: String) throws(EntityError) {
        let owner = try transaction("claiming the store") { db, _ in
            if let owner = try String.fetchOne(db, sql: "SELECT user_id FROM store") { return owner }
            try db.execute(sql: "INSERT INTO store (user_id) VALUES (?)", arguments: [userID])
            return userID
        }
        guard owner.utf8.elementsEqual(userID.utf8) else {
            throw EntityError(.foreignStore, "the store belongs to another user; use another path")
        }
    }

    // MARK: Key

    /// Checks the key. A store that is not encrypted yet is encrypted now.
    private func use(_ cipher: StoreCipher?) throws(EntityError) {
        let check = try turn("reading the store's key") { db, _ in
            try Data.fetchOne(db, sql: "SELECT key_check FROM store")
        }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, let cipher?): try change(to: cipher)
        case (_?, nil):
            throw EntityError(.storeKey, "the store is encrypted; pass its encryption key, or use another path")
        case (let check?, let cipher?):
            guard cipher.made(check) else {
                throw EntityError(
                    .storeKey, "the store is encrypted with another key; pass that key, or use another path")
            }
            key.cipher.withLock { $0 = cipher }
        }
    }

    /// Encrypts everything with another key in one transaction; nil: decrypts it.
    ///
    /// - Throws: `EntityError.persistence`; the former key stays valid then.
    func change(to new: StoreCipher?) throws(EntityError) {
        try outsideTransaction("changing the store's key") {
            try pool.barrierWriteWithoutTransaction { db in try inTurn { try rewrite(db, from: cipher, to: new) } }
        }
    }

    private func rewrite(_ db: Database, from old: StoreCipher?, to new: StoreCipher?) throws {
        // Overwritten data must not stay in free pages.
        try db.execute(sql: "PRAGMA secure_delete = ON")
        defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
        try db.inTransaction(.immediate) {
            try ColumnRewrite(db: db, from: old, to: new).everything()
            return .commit
        }
        // The file has the new key now, even when the clean-up fails. Free pages still contain data that was deleted
        // earlier, and the write-ahead log contains the former form.
        key.cipher.withLock { $0 = new }
        if old == nil { try? db.execute(sql: "VACUUM") }
        try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
    }
}
