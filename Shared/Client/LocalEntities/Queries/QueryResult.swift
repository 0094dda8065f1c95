/// The result of `executeQuery`.
public struct QueryResult: Sendable, Hashable {
    /// The names of the columns, in the order of the query.
    public let columns: [String]
    /// The rows; each has its values in the order of the columns.
    public let rows: [[AttributeValue]]

    /// Returns one value.
    ///
    /// - Returns: nil when there is no such row or column.
    public func value(row: Int, _ column: String) -> AttributeValue? {
        guard rows.indices.contains(row), let index = columns.firstIndex(of: column) else { return nil }
        return rows[row][index]
    }
}
