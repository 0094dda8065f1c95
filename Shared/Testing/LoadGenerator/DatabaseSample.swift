import PostgreSQL

/// Cumulative counters of the database.
struct DatabaseSample: Hashable, Sendable, Codable {
    var rowsInserted = 0
    var rowsUpdated = 0
    var rowsDeleted = 0
    /// Rows and index entries that scans read. A high count shows an inefficient query.
    var rowsScanned = 0
    /// Pages of tables and indexes that were accessed, from cache or disk.
    var pages = 0
    /// Each statement of the service is one transaction.
    var transactions = 0
    var walBytes = 0
    var walRecords = 0

    /// PostgreSQL's processes publish their counters at their next work, or after 10 s without work.
    static let delaySeconds = 11

    var rows: Int { rowsInserted + rowsUpdated + rowsDeleted }

    /// Reads the counters.
    static func measure(_ connection: PostgresConnection) throws(PostgresError) -> DatabaseSample {
        let rows = try connection.run(
            PostgresStatement(
                """
                SELECT d.tup_inserted, d.tup_updated, d.tup_deleted, d.tup_returned, d.blks_hit + d.blks_read,
                    d.xact_commit + d.xact_rollback,
                    pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint, w.wal_records
                FROM pg_stat_database d, pg_stat_wal w WHERE d.datname = current_database()
                """), within: .seconds(10))
        let sample = try rows.first { columns throws(PostgresError) in
            DatabaseSample(
                rowsInserted: try columns.next(), rowsUpdated: try columns.next(), rowsDeleted: try columns.next(),
                rowsScanned: try columns.next(), pages: try columns.next(), transactions: try columns.next(),
                walBytes: try columns.next(), walRecords: try columns.next())
        }
        return sample ?? DatabaseSample()
    }

    /// The difference to an earlier sample.
    func since(_ earlier: DatabaseSample) -> DatabaseSample {
        DatabaseSample(
            rowsInserted: rowsInserted - earlier.rowsInserted, rowsUpdated: rowsUpdated - earlier.rowsUpdated,
            rowsDeleted: rowsDeleted - earlier.rowsDeleted, rowsScanned: rowsScanned - earlier.rowsScanned,
            pages: pages - earlier.pages, transactions: transactions - earlier.transactions,
            walBytes: walBytes - earlier.walBytes, walRecords: walRecords - earlier.walRecords)
    }
}
