/// Why the database did not execute a request, and whether a retry can help.
@usableFromInline
package struct PostgresError: Error, Sendable, CustomStringConvertible {
    package enum Code: Hashable, Sendable {
        /// No connection, and nothing was sent.
        case unavailable
        /// Sent, but the connection or the time ended first: it may have been executed.
        case outcomeUnknown
        /// The server refused and rolled back. The SQLSTATE has five characters; see "PostgreSQL Error Codes".
        case server(sqlState: String)
        /// This process cannot work with this database.
        case misuse
    }

    package let code: Code
    /// For operators. May name tables and columns, never values of payloads.
    package let message: String
    package let mayRetry: Bool

    package init(code: Code, message: String, mayRetry: Bool) {
        self.code = code
        self.message = message
        self.mayRetry = mayRetry
    }

    /// The SQLSTATE of a refusal by the server.
    package var sqlState: String? {
        if case .server(let sqlState) = code { sqlState } else { nil }
    }

    @usableFromInline
    package var description: String { "\(code): \(message)" }
}
