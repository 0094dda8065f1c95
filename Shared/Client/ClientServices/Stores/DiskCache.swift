import Concurrency
public import Foundation
import GRDB
import MobileSync

/// A cache on disk with a limited size. The least recently used entries of all users are removed first.
///
/// Use it for data that the app can fetch again: a power failure can lose the last entries. `UserStores.diskCache`
/// makes it.
public final class DiskCache: Sendable {
    private static let schema = """
        CREATE TABLE entry (
            -- A user's id; empty: common.
            owner TEXT NOT NULL,
            name TEXT NOT NULL,
            value BLOB NOT NULL,
            -- Milliseconds since 1970; 0: never.
            expires_at_ms INTEGER NOT NULL,
            -- Rises with each use of any entry.
            used INTEGER NOT NULL,
            bytes INTEGER NOT NULL,
            PRIMARY KEY (owner, name));
        CREATE INDEX entry_used ON entry (used, bytes);
        """

    /// The approximate size of an entry without its key and value, in bytes.
    static let overheadBytes = 128

    private let database: DatabaseQueue
    private let capacity: Int
    private let cipher: StoreCipher?
    /// The owner of the entries of a call; nil when no user has ever signed in.
    private let owner: @Sendable () -> String?
    private let now: @Sendable () -> Date

    init(
        file: URL, capacity: Int, cipher: StoreCipher?, owner: @escaping @Sendable () -> String?,
        now: @escaping @Sendable () -> Date
    ) throws(ClientServiceError) {
        database = try ServiceStore.open(file, isDurable: false, schema: Self.schema).database
        self.capacity = capacity
        self.cipher = cipher
        self.owner = owner
        self.now = now
    }

    /// Stores an entry as the most recently used one. Other entries are removed until the capacity is sufficient.
    ///
    /// - Parameter expiresAt: the end of the entry's validity; nil: the entry does not expire.
    /// - Returns: false when the entry is larger than the capacity; the key then has no entry.
    /// - Throws: `ClientServiceError`: `store`; `noUser`; `invalidArgument` for a key that is empty, contains NUL or
    ///   has more than 256 characters (UTF-16 units).
    @discardableResult public func set(
        _ value: Data, for key: String, expiresAt: Date? = nil
    ) throws(ClientServiceError) -> Bool {
        try ServiceLimits.check(key: key)
        return try change("writing to a cache") { db, owner in
            let sealed = try cipher?.seal(value, for: Self.place(owner, key)) ?? value
            let bytes = sealed.count + key.utf8.count + Self.overheadBytes
            guard bytes <= capacity else {
                try Self.remove(key, of: owner, in: db)
                return false
            }
            try db.cachedStatement(
                sql: """
                    INSERT OR REPLACE INTO entry (owner, name, value, expires_at_ms, used, bytes)
                    VALUES (?, ?, ?, ?, (SELECT ifnull(max(used), 0) + 1 FROM entry), ?)
                    """
            ).execute(arguments: [owner, key, sealed, Self.milliseconds(expiresAt), bytes])
            try evict(in: db)
            return true
        }
    }

    /// Reads a value and makes it the most recently used one. The result is nil when there is no value, when it has
    /// expired, or when it was encrypted with another key.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`.
    public func value(for key: String) throws(ClientServiceError) -> Data? {
        try change("reading a cache") { db, owner in
            guard let stored = try stored(key, of: owner, in: db) else {
                try Self.remove(key, of: owner, in: db)
                return nil
            }
            try db.cachedStatement(
                sql: """
                    UPDATE entry SET used = (SELECT max(used) + 1 FROM entry)
                    WHERE owner = ? AND name = ? AND used < (SELECT max(used) FROM entry)
                    """
            ).execute(arguments: [owner, key])
            return stored
        }
    }

    /// Reads a value and does not change the order of use.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`.
    public func peek(_ key: String) throws(ClientServiceError) -> Data? {
        try change("reading a cache") { db, owner in try stored(key, of: owner, in: db) }
    }

    /// Whether there is a valid value. Does not change the order of use.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`.
    public func exists(_ key: String) throws(ClientServiceError) -> Bool { try peek(key) != nil }

    /// Removes the entries of these keys.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`.
    public func remove(_ keys: [String]) throws(ClientServiceError) {
        try change("removing from a cache") { db, owner in
            for key in keys { try Self.remove(key, of: owner, in: db) }
        }
    }

    /// Removes the entries of the current owner whose keys start with a prefix; empty: all its entries.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`.
    public func remove(prefix: String) throws(ClientServiceError) {
        try change("removing from a cache") { db, owner in
            try db.execute(
                sql: "DELETE FROM entry WHERE owner = ? AND substr(name, 1, length(?)) = ?",
                arguments: [owner, prefix, prefix])
        }
    }

    /// Removes the entries of the current owner whose keys end with a suffix.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`.
    public func remove(suffix: String) throws(ClientServiceError) {
        try remove { $0.hasSuffix(suffix) }
    }

    /// Removes the entries of the current owner whose keys contain a match of a regular expression.
    ///
    /// - Throws: `ClientServiceError`: `store`, `noUser`; `invalidArgument` when the pattern is not a regular
    ///   expression.
    public func remove(pattern: String) throws(ClientServiceError) {
        let expression = try ServiceLimits.expression(of: pattern)
        try remove { $0.contains(expression) }
    }

    private func remove(where isRemoved: (String) -> Bool) throws(ClientServiceError) {
        try change("removing from a cache") { db, owner in
            let keys = try String.fetchAll(db, sql: "SELECT name FROM entry WHERE owner = ?", arguments: [owner])
            for key in keys where isRemoved(key) { try Self.remove(key, of: owner, in: db) }
        }
    }

    /// The approximate size of the entries of all users, in bytes; at most the capacity.
    ///
    /// - Throws: `ClientServiceError.store`.
    public func bytes() throws(ClientServiceError) -> Int {
        try inTurn("measuring a cache") { db in try Self.bytes(in: db) }
    }

    // MARK: Database access

    private func change<Value>(
        _ doing: String, _ body: (Database, String) throws -> Value
    ) throws(ClientServiceError) -> Value {
        guard let owner = owner() else {
            throw ClientServiceError(.noUser, "the cache is per user, and no user has signed in yet")
        }
        return try inTurn(doing) { db in try body(db, owner) }
    }

    private func inTurn<Value>(
        _ doing: String, _ body: (Database) throws -> Value
    ) throws(ClientServiceError) -> Value {
        do { return try database.write(body) } catch {
            throw ClientServiceError(.store, "\(doing) failed (\(error))")
        }
    }

    private func stored(_ key: String, of owner: String, in db: Database) throws -> Data? {
        let sealed = try Data.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT value FROM entry WHERE owner = ? AND name = ? AND (expires_at_ms = 0 OR expires_at_ms > ?)
                    """), arguments: [owner, key, Self.milliseconds(now())])
        guard let cipher else { return sealed }
        return sealed.flatMap { try? cipher.open($0, for: Self.place(owner, key)) }
    }

    /// Removes expired entries first, then the least recently used ones.
    private func evict(in db: Database) throws {
        guard try Self.bytes(in: db) > capacity else { return }
        try db.execute(
            sql: "DELETE FROM entry WHERE expires_at_ms BETWEEN 1 AND ?", arguments: [Self.milliseconds(now())])
        var excess = try Self.bytes(in: db) - capacity
        while excess > 0, let row = try Row.fetchOne(db, sql: "SELECT used, bytes FROM entry ORDER BY used LIMIT 1") {
            try db.execute(sql: "DELETE FROM entry WHERE used = ?", arguments: [row[0] as Int64])
            excess -= row[1]
        }
    }

    private static func bytes(in db: Database) throws -> Int {
        try Int.fetchOne(db.cachedStatement(sql: "SELECT ifnull(sum(bytes), 0) FROM entry")) ?? 0
    }

    private static func remove(_ key: String, of owner: String, in db: Database) throws {
        try db.cachedStatement(sql: "DELETE FROM entry WHERE owner = ? AND name = ?").execute(arguments: [owner, key])
    }

    private static func milliseconds(_ date: Date?) -> Int64 {
        // A date before 1970 is in the past; 0 would mean "never".
        date.map { max($0.milliseconds, 1) } ?? 0
    }

    private static func place(_ owner: String, _ key: String) -> String { "\(owner)\0\(key)" }
}
