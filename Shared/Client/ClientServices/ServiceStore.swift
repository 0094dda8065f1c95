import Concurrency
public import Foundation
import GRDB
import MobileSync

/// The storage of the client services: items by area, owner and key in one SQLite file, `services.sqlite`.
///
/// Each change is on disk when its call returns. With a key, the bodies of all services are encrypted with AES-256-GCM;
/// owners and keys stay readable. One caller at a time uses the file.
public final class ServiceStore: Sendable {
    private static let schema = """
        -- One row. key_check: NULL while bodies are not encrypted.
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

    /// The folder of this store's file and of the services' own files.
    let folder: URL
    private let database: DatabaseQueue
    /// Changes only while the database's queue executes a call of this store.
    private let currentCipher: LockedValue<StoreCipher?>
    /// Whether SQLite could not read the file at opening. The damaged file was then renamed with the suffix `.damaged`,
    /// and this store started empty.
    public let replacedDamagedStore: Bool

    /// Opens or creates the store.
    ///
    /// - Parameters:
    ///   - folder: created when it is missing. Only this app can use it, and can open it only once at a time.
    ///   - key: 32 bytes. A store that was not encrypted is encrypted now. A nil value means: bodies are not encrypted.
    /// - Throws: `ClientServiceError`: `invalidArgument` for a key of another length; `storeKey` when the store is
    ///   encrypted with another key or the key is missing; `store`.
    public init(folder: URL, key: [UInt8]? = nil) throws(ClientServiceError) {
        let cipher = try key.map { key throws(ClientServiceError) in try StoreCipher(serviceKey: key) }
        self.folder = folder
        (database, replacedDamagedStore) = try Self.open(
            folder.appendingPathComponent("services.sqlite"), isDurable: true, schema: Self.schema)
        currentCipher = LockedValue(cipher)
        let check = try turn("reading the store's key") { db in
            try Data.fetchOne(db, sql: "SELECT key_check FROM store")
        }
        switch (check, cipher) {
        case (nil, nil): break
        case (nil, _?):
            currentCipher.withLock { $0 = nil }
            try change(to: cipher)
        case (_?, nil):
            throw ClientServiceError(.storeKey, "the store is encrypted; pass its key, or use another folder")
        case (let check?, let cipher?):
            guard cipher.made(check) else {
                throw ClientServiceError(
                    .storeKey, "the store is encrypted with another key; pass that key, or use another folder")
            }
        }
    }

    /// Opens or creates a database file of this module. A file that SQLite cannot read is renamed, and a new one is
    /// created.
    ///
    /// - Parameter schema: the tables of version 1, the only version so far.
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
            throw ClientServiceError(
                .store, "\(url.path) cannot be opened (\(error)); check folder, space and permissions")
        }
    }

    /// Encrypts all bodies with another key in one transaction; nil: decrypts them. Caches and logs have their own
    /// files and are not changed.
    ///
    /// - Throws: `ClientServiceError`: `invalidArgument` unless the key has 32 bytes; `store`. The former key stays
    ///   valid then.
    public func changeKey(to key: [UInt8]?) throws(ClientServiceError) {
        try change(to: try key.map { key throws(ClientServiceError) in try StoreCipher(serviceKey: key) })
    }

    private func change(to new: StoreCipher?) throws(ClientServiceError) {
        try turn("changing the store's key") { db in
            let old = currentCipher.withLock { $0 }
            // Overwritten data must not stay in free pages.
            try db.execute(sql: "PRAGMA secure_delete = ON")
            defer { try? db.execute(sql: "PRAGMA secure_delete = OFF") }
            try db.inTransaction(.immediate) {
                try ServiceItems(db: db, cipher: old).rewrite(with: new)
                try db.execute(sql: "UPDATE store SET key_check = ?", arguments: [try new?.makeCheck()])
                return .commit
            }
            currentCipher.withLock { $0 = new }
            // The file has the new key now, even when the clean-up fails. Free pages still contain data that was
            // deleted earlier, and the write-ahead log contains the former form.
            if old == nil { try? db.execute(sql: "VACUUM") }
            try? db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
    }

    /// The cipher of the services' own files.
    var cipher: StoreCipher? { currentCipher.withLock { $0 } }

    /// Reads items while no other call uses the store.
    ///
    /// - Throws: `ClientServiceError.store`; an error of this type from the body is rethrown.
    func read<Value>(_ doing: String, _ body: (ServiceItems) throws -> Value) throws(ClientServiceError) -> Value {
        try turn(doing) { db in try body(ServiceItems(db: db, cipher: currentCipher.withLock { $0 })) }
    }

    /// Changes items in one transaction. The change is on disk when the call returns.
    ///
    /// - Parameter committed: called after the commit, before another call can use the store. It updates state in
    ///   memory, so the state changes in the order of the commits.
    /// - Throws: `ClientServiceError.store`; an error of this type from the body is rethrown. Nothing is changed then.
    func write<Value>(
        _ doing: String, _ body: (ServiceItems) throws -> Value, committed: (Value) -> Void = { _ in }
    ) throws(ClientServiceError) -> Value {
        try turn(doing) { db in
            var value: Value?
            try db.inTransaction(.immediate) {
                value = try body(ServiceItems(db: db, cipher: currentCipher.withLock { $0 }))
                return .commit
            }
            guard let value else { throw DatabaseError(message: "the transaction returned no value") }
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
