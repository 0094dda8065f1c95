import PostgreSQL
package import SyncModel

/// The database's clock, the only clock that decides validity (D11).
package enum DatabaseTime {
    /// The clock as a column of a statement, in whole milliseconds since 1970.
    static let column = "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

    /// The present database time.
    package static let now = Query(PostgresStatement("SELECT \(column)")) { rows throws(PostgresError) in
        try rows.first(WallTime.self) ?? WallTime(milliseconds: 0)
    }
}
