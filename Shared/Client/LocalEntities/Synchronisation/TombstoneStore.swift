import GRDB

/// The server's counters of deleted rows, so that an older import does not restore a row.
struct TombstoneStore {
    let context: TransactionContext

    /// The counter of a row's deletion; nil: none is stored.
    func counter(_ typeName: String, _ key: String) throws -> Int64? {
        try Int64.fetchOne(
            context.db.cachedStatement(sql: "SELECT counter FROM tombstone WHERE type_name = ? AND entity_key = ?"),
            arguments: [typeName, key])
    }

    /// Stores the counter of a deletion; nil is not stored.
    func record(_ typeName: String, _ key: String, counter: Int64?) throws {
        guard let counter else { return }
        try context.db.cachedStatement(
            sql: """
                INSERT INTO tombstone VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET counter = excluded.counter, at_ms = excluded.at_ms
                """
        ).execute(arguments: [typeName, key, counter, context.now])
    }

    /// Removes the counter of a row that the server has again.
    func remove(_ typeName: String, _ key: String) throws {
        try context.db.cachedStatement(sql: "DELETE FROM tombstone WHERE type_name = ? AND entity_key = ?")
            .execute(arguments: [typeName, key])
    }

    /// Removes all counters of a type.
    func removeAll(of typeName: String) throws {
        try context.db.execute(sql: "DELETE FROM tombstone WHERE type_name = ?", arguments: [typeName])
    }

    /// Removes the counters of deletions before a time, in milliseconds since 1970.
    func prune(before oldest: Int64) throws {
        try context.db.execute(sql: "DELETE FROM tombstone WHERE at_ms < ?", arguments: [oldest])
    }
}
