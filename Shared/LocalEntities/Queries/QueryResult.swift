/// What `executeQuery` gives.
public struct QueryResult: Sendable, Hashable {
    /// Names of the columns, as the query has them.
    public let columns: [String]
    /// Values in the order of the columns.
    public let rows: [[AttributeValue]]

    /// One value.
    ///
    /// - Returns: nil when there is no such row or column.
    public func value(row: Int, _ column: String) -> AttributeValue? {
        guard rows.indices.contains(row), let index = columns.firstIndex(of: column) else { return nil }
        return rows[row][index]
    }
}
