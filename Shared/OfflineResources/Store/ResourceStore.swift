import Foundation
import GRDB
import MobileSync

/// The cache and the queue of edits in one SQLite file; each call is one transaction.
///
/// `synchronous=FULL`: an edit that was taken must survive a power cut. Data has an owner, the user it was fetched for,
/// and every call names one: nobody gets another's.
actor ResourceStore {
    nonisolated let queue = StoreQueue()
    nonisolated var unownedExecutor: UnownedSerialExecutor { queue.asUnownedSerialExecutor() }

    private let database: DatabaseQueue
    private let limit: Int
    let cipher: (any ResourceCipher)?
    let clock: @Sendable () -> Date
    /// This start of the app.
    nonisolated let run: Int64
    /// The file at this path was damaged; it stands beside this new one.
    nonisolated let replacedDamaged: Bool

    /// Opens or creates the store, counts the start, and evicts what its policies say.
    ///
    /// - Parameter limit: bytes that resources may take; then nothing more is stored.
    /// - Throws: `ResourceError`: `store` when the file cannot be used, `storeKey` when it was sealed otherwise.
    init(
        path: String, limit: Int, cipher: (any ResourceCipher)?, clock: @escaping @Sendable () -> Date
    ) throws(ResourceError) {
        do {
            (database, replacedDamaged) = try SQLiteFile.open(
                path, label: "offline-resources", migrator: StoreSchema.migrator)
            let now = clock()
            try Self.use(cipher, in: database)
            run = try database.write { db in
                let run = try Int64.fetchOne(db, sql: "UPDATE store SET run = run + 1 RETURNING run") ?? 0
                try Self.evict(in: db, now: now, run: run)
                // Of a start that has ended.
                try db.execute(sql: "UPDATE edit SET is_offline = 1")
                return run
            }
        } catch {
            throw error as? ResourceError
                ?? ResourceError(
                    .store, "the store \(path) cannot be opened (\(error)); check folder, space and rights")
        }
        self.limit = limit
        self.cipher = cipher
        self.clock = clock
    }

    private static let checkText = [UInt8]("offline resources key".utf8)

    /// Takes up the key that the store was sealed with; a store without one is sealed now.
    private static func use(_ cipher: (any ResourceCipher)?, in database: DatabaseQueue) throws {
        let check = try database.read { db in try Data.fetchOne(db, sql: "SELECT key_check FROM store") }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, let cipher?):
            try database.writeWithoutTransaction { db in
                // What is written over is not to be found in free pages.
                try db.execute(sql: "PRAGMA secure_delete = ON")
                defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
                try db.inTransaction(.immediate) {
                    try StoreTransaction(db: db, cipher: nil, limit: .max, run: 0).reseal(with: cipher)
                    let check = Data(try cipher.seal(checkText, for: "check"))
                    try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [check])
                    return .commit
                }
                // What was deleted earlier is in free pages still, and the log before holds the former form.
                try? db.execute(sql: "VACUUM")
                try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
            }
        case (_?, nil):
            throw ResourceError(.storeKey, "the store is sealed: give its cipher, or use another path")
        case (let check?, let cipher?):
            guard (try? cipher.open([UInt8](check), for: "check")) == checkText else {
                throw ResourceError(
                    .storeKey, "the store was sealed with another key: give that one, or use another path")
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
            let policy = try StoreTransaction.policy(row["policy"])
            let state = CopyState.of(
                policy, fetchedAt: Date(milliseconds: row["fetched_at_ms"]), run: row["run"],
                isInvalid: row["is_invalid"], now: now, currentRun: run)
            guard state.isEvictedAtStartup(policy, hasEdits: false) else { continue }
            try db.execute(sql: "DELETE FROM resource WHERE id = ?", arguments: [row["id"] as Int64])
        }
    }

    /// One transaction, on the disk when this returns.
    ///
    /// - Throws: `ResourceError.store`, and what the body throws of this type; nothing is changed then.
    func write<Value>(
        _ doing: String, _ body: (StoreTransaction) throws -> Value
    ) throws(ResourceError) -> Value {
        do {
            return try database.write { db in
                try body(StoreTransaction(db: db, cipher: cipher, limit: limit, run: run))
            }
        } catch {
            throw error as? ResourceError ?? ResourceError(.store, "\(doing) failed (\(error))")
        }
    }
}
