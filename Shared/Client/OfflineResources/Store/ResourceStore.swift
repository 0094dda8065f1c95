import Concurrency
import Foundation
import GRDB
import MobileSync

/// The cache and the queue of edits in one SQLite file. Each call is one transaction.
///
/// One connection writes, and a pool of readers reads beside it, so a read never waits until a commit is on the disk.
/// No call blocks its caller's thread.
///
/// `synchronous=FULL`: an accepted edit must survive a power failure. Data has an owner, the user it was fetched for.
/// Every call names the owner, so no user gets another user's data.
actor ResourceStore {
    nonisolated let queue = BlockingExecutor(label: "offline-resources")
    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    private let database: DatabasePool
    private let limit: Int
    let cipher: (any ResourceCipher)?
    let clock: @Sendable () -> Date
    /// The number of this start of the app.
    nonisolated let run: Int64
    /// Whether the file was damaged and has been renamed.
    nonisolated let replacedDamaged: Bool

    /// Opens or creates the store, counts the start and evicts copies by their policies.
    ///
    /// - Parameter limit: the largest size of copies and edits in bytes.
    /// - Throws: `ResourceError`: `store` when the file cannot be used; `storeKey` when it is encrypted with another
    ///   key or the cipher is missing.
    init(
        path: String, limit: Int, cipher: (any ResourceCipher)?, clock: @escaping @Sendable () -> Date
    ) throws(ResourceError) {
        do {
            (database, replacedDamaged) = try SQLiteFile.openPool(
                path, label: "offline-resources", migrator: StoreSchema.migrator, prepare: { _ in })
            let now = clock()
            try Self.use(cipher, in: database)
            run = try database.write { db in
                let run = try Int64.fetchOne(db, sql: "UPDATE store SET run = run + 1 RETURNING run") ?? 0
                try Self.evict(in: db, now: now, run: run)
                // The callers of the former start do not wait any more.
                try db.execute(sql: "UPDATE edit SET is_offline = 1")
                return run
            }
        } catch {
            throw error as? ResourceError
                ?? ResourceError(
                    .store, "the store \(path) cannot be opened (\(error)); check folder, space and permissions")
        }
        self.limit = limit
        self.cipher = cipher
        self.clock = clock
    }

    private static let checkText = [UInt8]("offline resources key".utf8)

    /// Checks the key. A store that is not encrypted yet is encrypted now.
    private static func use(_ cipher: (any ResourceCipher)?, in database: DatabasePool) throws {
        let check = try database.read { db in try Data.fetchOne(db, sql: "SELECT key_check FROM store") }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, let cipher?):
            try database.writeWithoutTransaction { db in
                // Overwritten data must not stay in free pages.
                try db.execute(sql: "PRAGMA secure_delete = ON")
                defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
                try db.inTransaction(.immediate) {
                    try StoreContext(db: db, cipher: nil, limit: .max, run: 0).reseal(with: cipher)
                    let check = Data(try cipher.seal(checkText, for: "check"))
                    try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [check])
                    return .commit
                }
                // Free pages still contain data that was deleted earlier, and the write-ahead log contains the former
                // form.
                try? db.execute(sql: "VACUUM")
                try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
            }
        case (_?, nil):
            throw ResourceError(.storeKey, "the store is encrypted; pass its cipher, or use another path")
        case (let check?, let cipher?):
            guard (try? cipher.open([UInt8](check), for: "check")) == checkText else {
                throw ResourceError(
                    .storeKey, "the store is encrypted with another key; pass that key, or use another path")
            }
        }
    }

    private static func evict(in db: Database, now: Date, run: Int64) throws {
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT id, fetched_at_ms, run, policy, is_invalid FROM resource WHERE \(StoreSchema.hasNoEdits)
                """)
        for row in rows {
            let policy = try StoreContext.policy(row["policy"])
            let state = CopyState.of(
                policy, fetchedAt: Date(milliseconds: row["fetched_at_ms"]), run: row["run"],
                isInvalid: row["is_invalid"], now: now, currentRun: run)
            guard state.isEvictedAtStartup(policy, hasEdits: false) else { continue }
            try db.execute(sql: "DELETE FROM resource WHERE id = ?", arguments: [row["id"] as Int64])
        }
    }

    /// Executes one transaction. The change is on disk when the call returns.
    ///
    /// - Throws: `ResourceError.store`; an error of this type from the body is rethrown. Nothing is changed then.
    func write<Value>(
        _ doing: String, _ body: (StoreTransaction) throws -> Value
    ) throws(ResourceError) -> Value {
        do {
            return try database.write { db in try body(transaction(db)) }
        } catch {
            throw Self.failure(error, of: doing)
        }
    }

    /// Reads one consistent state, which contains every change whose `write` has returned.
    ///
    /// A cancelled task still gets its value: the callers decide what a cancellation means for an edit.
    ///
    /// - Throws: as `write`.
    nonisolated func read<Value: Sendable>(
        _ doing: String, _ body: @escaping @Sendable (StoreTransaction) throws -> Value
    ) async throws(ResourceError) -> Value {
        let result: Result<Value, any Error> = await withCheckedContinuation { continuation in
            database.asyncRead { access in
                continuation.resume(returning: Result { try body(self.transaction(access.get())) })
            }
        }
        do {
            return try result.get()
        } catch {
            throw Self.failure(error, of: doing)
        }
    }

    /// Reads now and again after each commit that changed a part of the rows it read. Equal values in a row are one. A
    /// slow consumer gets only the newest value.
    nonisolated func observe<Value: Sendable & Equatable>(
        _ body: @escaping @Sendable (StoreTransaction) throws -> Value
    ) -> AsyncValueObservation<Value> {
        ValueObservation.tracking { db in try body(self.transaction(db)) }
            .removeDuplicates()
            .values(in: database, bufferingPolicy: .bufferingNewest(1))
    }

    /// Makes every observation read again.
    nonisolated func refreshObservations() {
        database.asyncWrite({ db in try db.notifyChanges(in: .fullDatabase) }, completion: { _, _ in })
    }

    nonisolated private func transaction(_ db: Database) -> StoreTransaction {
        StoreTransaction(StoreContext(db: db, cipher: cipher, limit: limit, run: run))
    }

    /// The error of a store's call.
    static func failure(_ error: any Error, of doing: String) -> ResourceError {
        error as? ResourceError ?? ResourceError(.store, "\(doing) failed (\(error))")
    }
}
