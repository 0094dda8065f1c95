public import Foundation
import GRDB
import MobileSync
import Synchronization

/// What the client services keep over restarts: items by area, owner and key in one SQLite file, `services.sqlite`.
///
/// Each change is on the disk when its call returns. With a key all bodies are sealed (AES-256-GCM), whatever service
/// they are of; owners and keys stay readable. Bodies are small, and there is one writer at a time.
public final class ServiceStore: Sendable {
    private static let schema = """
        -- One row; key_check: NULL while bodies are readable for everybody.
        CREATE TABLE store (key_check BLOB);
        INSERT INTO store VALUES (NULL);
        CREATE TABLE item (
            -- ServiceArea.
            area TEXT NOT NULL,
            -- A user's id; empty: common.
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            body BLOB NOT NULL,
            PRIMARY KEY (area, owner, name)) WITHOUT ROWID;
        """

    /// Where this store's file is, and those of the services that need files of their own.
    let folder: URL
    private let database: DatabaseQueue
    /// Changes only in the database's turn.
    private let currentCipher: Mutex<StoreCipher?>
    /// The file was damaged beyond reading: it stands beside the new one, with `.damaged` at the end.
    public let replacedDamagedStore: Bool

    /// Opens or creates the store.
    ///
    /// - Parameters:
    ///   - folder: made when it is not there; of this app alone, which opens it once.
    ///   - key: 32 bytes; a store that was readable for everybody is sealed with it now. Nil: bodies are not sealed.
    /// - Throws: `ClientServiceError`: `invalidArgument` for a key of another length, `storeKey` when the store was
    ///   sealed with another, `store`.
    public init(folder: URL, key: [UInt8]? = nil) throws(ClientServiceError) {
        let cipher = try key.map { key throws(ClientServiceError) in try StoreCipher(serviceKey: key) }
        self.folder = folder
        (database, replacedDamagedStore) = try Self.open(
            folder.appendingPathComponent("services.sqlite"), isDurable: true, schema: Self.schema)
        currentCipher = Mutex(cipher)
        let check = try turn("reading the store's key") { db in
            try Data.fetchOne(db, sql: "SELECT key_check FROM store")
        }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, _?):
            currentCipher.withLock { $0 = nil }
            try change(to: cipher)
        case (_?, nil):
            throw ClientServiceError(.storeKey, "the store is encrypted: give its key, or use another folder")
        case (let check?, let cipher?):
            guard cipher.made(check) else {
                throw ClientServiceError(
                    .storeKey, "the store was encrypted with another key: give that one, or use another folder")
            }
        }
    }

    /// Opens or creates a file of this module's; one that SQLite cannot read is moved aside, and a new one begins.
    ///
    /// - Parameter schema: the tables, as of the only version there is so far.
    /// - Throws: `ClientServiceError.store`.
    static func open(
        _ url: URL, isDurable: Bool, schema: String
    ) throws(ClientServiceError) -> (database: DatabaseQueue, replacedDamaged: Bool) {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in try db.execute(sql: schema) }
        do {
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            return try SQLiteFile.open(
                url.path, label: "client-services", isDurable: isDurable, migrator: migrator)
        } catch {
            throw ClientServiceError(.store, "\(url.path) cannot be opened (\(error)); check folder, space and rights")
        }
    }

    /// Writes all bodies anew under another key, in one transaction; nil: readable for everybody. Caches and logs,
    /// which have files of their own, are not touched.
    ///
    /// - Throws: `ClientServiceError.invalidArgument` unless the key has 32 bytes, `store`; the former key counts then.
    public func changeKey(to key: [UInt8]?) throws(ClientServiceError) {
        try change(to: try key.map { key throws(ClientServiceError) in try StoreCipher(serviceKey: key) })
    }

    private func change(to new: StoreCipher?) throws(ClientServiceError) {
        try turn("changing the store's key") { db in
            let old = currentCipher.withLock { $0 }
            // What is written over is not to be found in free pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
            defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
            try db.inTransaction(.immediate) {
                try ServiceItems(db: db, cipher: old).rewrite(with: new)
                try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [try new?.makeCheck()])
                return .commit
            }
            currentCipher.withLock { $0 = new }
            // From here on the file has the new key, whatever becomes of the cleaning: what was deleted earlier is in
            // free pages still, and the log before holds the former form.
            if old == nil { try? db.execute(sql: "VACUUM") }
            try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    /// The key that files beside the store are sealed with.
    var cipher: StoreCipher? { currentCipher.withLock { $0 } }

    /// Reads in the store's turn.
    ///
    /// - Throws: `ClientServiceError.store`, and what the body throws of this type.
    func read<Value>(_ doing: String, _ body: (ServiceItems) throws -> Value) throws(ClientServiceError) -> Value {
        try turn(doing) { db in try body(ServiceItems(db: db, cipher: currentCipher.withLock { $0 })) }
    }

    /// Changes items in one transaction, durable when this returns.
    ///
    /// - Parameter committed: still in the store's turn, once the change is on the disk: what is kept in memory beside
    ///   it follows in the same order.
    /// - Throws: `ClientServiceError.store`, and what the body throws of this type; nothing is changed then.
    func write<Value>(
        _ doing: String, _ body: (ServiceItems) throws -> Value, committed: (Value) -> Void = { _ in }
    ) throws(ClientServiceError) -> Value {
        try turn(doing) { db in
            var value: Value?
            try db.inTransaction(.immediate) {
                value = try body(ServiceItems(db: db, cipher: currentCipher.withLock { $0 }))
                return .commit
            }
            guard let value else { throw DatabaseError(message: "the transaction gave nothing") }
            committed(value)
            return value
        }
    }

    private func turn<Value>(_ doing: String, _ body: (Database) throws -> Value) throws(ClientServiceError) -> Value {
        do {
            return try database.writeWithoutTransaction(body)
        } catch {
            throw error as? ClientServiceError ?? ClientServiceError(.store, "\(doing) failed (\(error))")
        }
    }
}
