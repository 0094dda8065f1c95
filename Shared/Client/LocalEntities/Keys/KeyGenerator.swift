import GRDB
import MobileSync

/// Generates keys from ranges that the server has granted (ENT2). No other device has the same keys; it works offline.
public final class KeyGenerator: Sendable {
    private let database: EntityDatabase
    private let source: any KeyRangeSource
    /// Only one call of `refill` for the store requests a range at a time.
    private let requests: AsyncLock

    /// Makes a generator.
    ///
    /// - Parameters:
    ///   - store: stores the ranges.
    ///   - source: requests ranges from the server.
    public init(store: EntityStore, source: any KeyRangeSource) {
        database = store.database
        requests = store.keyRequests
        self.source = source
    }

    /// Returns the next key. The key is marked as used on disk when the call returns.
    ///
    /// - Throws: `EntityError`: `keysExhausted`: call `refill(whenBelow:)`; `persistence`.
    public func generateId() throws(EntityError) -> Int64 {
        let id = try database.transaction("generating a key") { db, _ in
            try Int64.fetchOne(
                db,
                sql: """
                    UPDATE key_range SET next_id = next_id + 1 WHERE first_id =
                        (SELECT min(first_id) FROM key_range WHERE next_id <= last_id)
                    RETURNING next_id - 1
                    """)
        }
        guard let id else {
            throw EntityError(.keysExhausted, "all granted keys are used; call refill while there is a connection")
        }
        return id
    }

    /// Returns the number of unused keys.
    ///
    /// - Throws: `EntityError.persistence`.
    public func remaining() throws(EntityError) -> Int64 {
        try database.read("counting keys") { db, _ in
            try Int64.fetchOne(db, sql: "SELECT sum(last_id - next_id + 1) FROM key_range") ?? 0
        }
    }

    /// Requests a range from the server when fewer than `count` keys are left, and reports the used keys. Concurrent
    /// calls wait for each other.
    ///
    /// - Throws: errors of the source; `EntityError`: `invalidArgument` for an invalid range and for a range that
    ///   overlaps an earlier one; `persistence`.
    public func refill(whenBelow count: Int64) async throws {
        try await requests.withLock {
            if try remaining() < count { try await request() }
        }
    }

    private func request() async throws {
        let use = try database.read("reading the use of keys") { db, _ in
            try Row.fetchAll(
                db, sql: "SELECT first_id, last_id, next_id FROM key_range WHERE NOT is_reported ORDER BY first_id"
            ).map { row in
                KeyUse(range: KeyRange(first: row[0], last: row[1]), used: (row[2] as Int64) - (row[0] as Int64))
            }
        }
        let range = try await source.requestRange(reporting: use)
        guard range.first >= 0, range.last >= range.first, range.last < Int64.max,
            range.last - range.first < EntityLimits.keysInRange
        else {
            throw EntityError(
                .invalidArgument, "a range must have 1 to \(EntityLimits.keysInRange) keys, and no key below 0")
        }
        try database.transaction("storing a range of keys") { db, _ in
            for part in use where part.used > part.range.last - part.range.first {
                try db.execute(
                    sql: "UPDATE key_range SET is_reported = 1 WHERE first_id = ?", arguments: [part.range.first])
            }
            let isKnown = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM key_range WHERE first_id <= ? AND last_id >= ?)",
                arguments: [range.last, range.first])
            guard isKnown != true else {
                throw EntityError(.invalidArgument, "the server granted a range that overlaps an earlier one")
            }
            try db.execute(
                sql: "INSERT INTO key_range (first_id, last_id, next_id) VALUES (?, ?, ?)",
                arguments: [range.first, range.last, range.first])
        }
    }
}
