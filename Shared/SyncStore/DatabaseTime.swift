import PostgreSQL
package import SyncModel

/// The database's clock: validity goes by it alone (spec D11).
package enum DatabaseTime {
    /// As a column of a statement, in whole milliseconds since 1970.
    static let column = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// What it shows now.
    package static let now = Query(PostgresStatement("SELECT \(column)")) { rows in
        WallTime(milliseconds: rows.first?.int64(0) ?? 0)
    }
}
