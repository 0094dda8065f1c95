import GRDB

/// Keys out of ranges that the server has granted (spec, two-way §2): they collide with nobody's, also offline.
public final class KeyGenerator: Sendable {
    private let database: EntityDatabase
    private let source: any KeyRangeSource
    private let turn = SubmissionTurn()

    /// - Parameter store: keeps the ranges.
    public init(store: EntityStore, source: any KeyRangeSource) {
        database = store.database
        self.source = source
    }

    /// The next key; it is on the disk as used when this returns.
    ///
    /// - Throws: `EntityError.keysExhausted`: `refill`; `persistence`.
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
            throw EntityError(.keysExhausted, "no granted key is left: call refill while there is a connection")
        }
        return id
    }

    /// Keys that are left.
    ///
    /// - Throws: `EntityError.persistence`.
    public func remaining() throws(EntityError) -> Int64 {
        try database.turn("counting keys") { db, _ in
            try Int64.fetchOne(db, sql: "SELECT sum(last_id - next_id + 1) FROM key_range") ?? 0
        }
    }

    /// Asks the server for a range when less keys are left than this, and reports what is used. One call asks at a
    /// time.
    ///
    /// - Throws: What the source throws; `EntityError`: `invalidArgument` for a range that cannot be, or that overlaps
    ///   one that was granted before; `persistence`.
    public func refill(whenBelow count: Int64) async throws {
        await turn.enter()
        do {
            if try remaining() < count { try await request() }
            await turn.leave()
        } catch {
            await turn.leave()
            throw error
        }
    }

    private func request() async throws {
        let use = try database.turn("reading the use of keys") { db, _ in
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
            throw EntityError(.invalidArgument, "a range of keys has 1 to \(EntityLimits.keysInRange), from 0 on")
        }
        try database.transaction("keeping a range of keys") { db, _ in
            for part in use where part.used > part.range.last - part.range.first {
                try db.execute(
                    sql: "UPDATE key_range SET is_reported = 1 WHERE first_id = ?", arguments: [part.range.first])
            }
            let isKnown = try Bool.fetchOne(
                db, sql: "SELECT EXISTS (SELECT 1 FROM key_range WHERE first_id <= ? AND last_id >= ?)",
                arguments: [range.last, range.first])
            guard isKnown != true else {
                throw EntityError(.invalidArgument, "the server granted keys that it had granted before")
            }
            try db.execute(
                sql: "INSERT INTO key_range (first_id, last_id, next_id) VALUES (?, ?, ?)",
                arguments: [range.first, range.last, range.first])
        }
    }
}
