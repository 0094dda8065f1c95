import PostgreSQL

/// What the database has done so far.
struct DatabaseSample: Hashable, Sendable, Codable {
    var rowsInserted = 0
    var rowsUpdated = 0
    var rowsDeleted = 0
    /// Rows and index entries that scans came by: it shows a query that looks at more than it needs.
    var rowsScanned = 0
    /// Pages looked at, of tables and indexes, wherever they were.
    var pages = 0
    /// Every statement of ours is a transaction of its own.
    var transactions = 0
    var walBytes = 0
    var walRecords = 0

    /// PostgreSQL's processes hand in what they counted when they next work, or after 10 s without work.
    static let delaySeconds = 11

    var rows: Int { rowsInserted + rowsUpdated + rowsDeleted }

    /// Asks the database.
    static func take(_ connection: PostgresConnection) throws(PostgresError) -> DatabaseSample {
        let rows = try connection.run(
            PostgresStatement(
                """
                SELECT d.tup_inserted, d.tup_updated, d.tup_deleted, d.xact_commit + d.xact_rollback,
                    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, w.wal_records,
                    d.tup_returned, d.blks_hit + d.blks_read
                FROM pg_stat_database d, pg_stat_wal w WHERE d.datname = current_database()
                """), within: .seconds(10))
        guard let row = rows.first else { return DatabaseSample() }
        func number(_ column: Int) -> Int { Int(row.int64(column)) }
        return DatabaseSample(
            rowsInserted: number(0), rowsUpdated: number(1), rowsDeleted: number(2), rowsScanned: number(6),
            pages: number(7), transactions: number(3), walBytes: number(4), walRecords: number(5))
    }

    /// What was done since.
    func since(_ earlier: DatabaseSample) -> DatabaseSample {
        DatabaseSample(
            rowsInserted: rowsInserted - earlier.rowsInserted, rowsUpdated: rowsUpdated - earlier.rowsUpdated,
            rowsDeleted: rowsDeleted - earlier.rowsDeleted, rowsScanned: rowsScanned - earlier.rowsScanned,
            pages: pages - earlier.pages, transactions: transactions - earlier.transactions,
            walBytes: walBytes - earlier.walBytes, walRecords: walRecords - earlier.walRecords)
    }
}
