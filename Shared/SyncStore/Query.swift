package import PostgreSQL

/// A statement and how its rows are read: stores make them, the process runs as many as it likes in one round trip.
package struct Query<Output: Sendable>: Sendable {
    package let statement: PostgresStatement
    package let decode: @Sendable (PostgresRows) -> Output

    package init(_ statement: PostgresStatement, decode: @escaping @Sendable (PostgresRows) -> Output) {
        self.statement = statement
        self.decode = decode
    }
}

extension PostgresConnection {
    /// Runs one query.
    package func run<Output>(_ query: Query<Output>, within limit: Duration) throws(PostgresError) -> Output {
        query.decode(try run(query.statement, within: limit))
    }

    /// Runs queries of one kind in one round trip; each is its own transaction and has its own result.
    package func run<Output>(
        _ queries: [Query<Output>], within limit: Duration
    ) throws(PostgresError) -> [Result<Output, PostgresError>] {
        let results = try run(queries.map(\.statement), within: limit)
        return zip(queries, results).map { query, result in result.map(query.decode) }
    }
}
