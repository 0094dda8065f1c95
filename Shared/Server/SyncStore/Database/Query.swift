package import PostgreSQL

/// A statement and the decoder of its rows. Stores make queries; a process runs any number of them in one round trip.
package struct Query<Output: Sendable>: Sendable {
    package let statement: PostgresStatement
    package let decode: @Sendable (PostgresRows) throws(PostgresError) -> Output

    package init(
        _ statement: PostgresStatement, decode: @escaping @Sendable (PostgresRows) throws(PostgresError) -> Output
    ) {
        self.statement = statement
        self.decode = decode
    }

    /// The decoded result of the statement.
    func result(of rows: Result<PostgresRows, PostgresError>) -> Result<Output, PostgresError> {
        Result { () throws(PostgresError) in try decode(try rows.get()) }
    }
}

extension PostgresConnection {
    /// Runs one query.
    package func run<Output>(_ query: Query<Output>, within limit: Duration) throws(PostgresError) -> Output {
        try query.decode(try run(query.statement, within: limit))
    }

    /// Runs queries of one kind in one round trip; each is its own transaction and has its own result.
    package func run<Output>(
        _ queries: [Query<Output>], within limit: Duration
    ) throws(PostgresError) -> [Result<Output, PostgresError>] {
        let results = try run(queries.map(\.statement), within: limit)
        return zip(queries, results).map { query, result in query.result(of: result) }
    }
}
