/// Why the database did not do what was asked, and whether asking again can help.
package struct PostgresError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No connection, and nothing was sent.
        case unavailable
        /// It was sent and the connection or the time ran out: it may have been done.
        case outcomeUnknown
        /// The server refused and rolled back; five characters, see "PostgreSQL Error Codes".
        case server(sqlState: String)
        /// The database is not one that this process can work with.
        case misuse
    }

    package let code: Code
    /// For operators; may name tables and columns, never values of payloads.
    package let message: String
    package let mayRetry: Bool

    package init(code: Code, message: String, mayRetry: Bool) {
        self.code = code
        self.message = message
        self.mayRetry = mayRetry
    }

    /// Of a refusal by the server.
    package var sqlState: String? {
        if case .server(let sqlState) = code { sqlState } else { nil }
    }

    package var description: String { "\(code): \(message)" }
}
