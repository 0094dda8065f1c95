/// Where a server is, who connects, and the server's own bounds on what this session may do to others.
package struct PostgresConfiguration: Sendable {
    package var host: String
    package var port: Int
    package var database: String
    package var user: String
    /// Nil where the server asks for none.
    package var password: String?
    /// How the server is believed; nil for a connection in the clear.
    package var security: PostgresSecurity?
    /// Shown by the server's own views.
    package var applicationName: String
    package var connectTimeout: Duration
    /// The server ends a statement after this long.
    package var statementTimeout: Duration
    /// The server ends a statement that waited this long for a lock.
    package var lockTimeout: Duration
    /// The server ends a session that sleeps in a transaction this long, as its locks hold up others.
    package var idleInTransactionTimeout: Duration

    package init(
        host: String, port: Int, database: String, user: String, password: String? = nil,
        security: PostgresSecurity? = nil, applicationName: String = "mss", connectTimeout: Duration = .seconds(5),
        statementTimeout: Duration = .seconds(5), lockTimeout: Duration = .seconds(1),
        idleInTransactionTimeout: Duration = .seconds(2)
    ) {
        self.host = host
        self.port = port
        self.database = database
        self.user = user
        self.password = password
        self.security = security
        self.applicationName = applicationName
        self.connectTimeout = connectTimeout
        self.statementTimeout = statementTimeout
        self.lockTimeout = lockTimeout
        self.idleInTransactionTimeout = idleInTransactionTimeout
    }

    /// The libpq parameters (libpq: Parameter Key Words). Kerberos is never asked for: it would look for a ticket at each
    /// connect, take the place of TLS if it found one, and it takes its locks away when the process exits, under threads
    /// that are in it.
    var parameters: [(String, String)] {
        func milliseconds(_ duration: Duration) -> Int64 {
            duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
        }
        let options = [
            "statement_timeout=\(milliseconds(statementTimeout))", "lock_timeout=\(milliseconds(lockTimeout))",
            "idle_in_transaction_session_timeout=\(milliseconds(idleInTransactionTimeout))",
            "client_connection_check_interval=1000", "tcp_user_timeout=5000",
        ]
        var parameters = [
            ("host", host), ("port", String(port)), ("dbname", database), ("user", user),
            ("application_name", applicationName), ("client_encoding", "UTF8"), ("gssencmode", "disable"),
            ("tcp_user_timeout", "5000"),
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("options", options.map { "-c \($0)" }.joined(separator: " ")),
        ]
        if let password { parameters.append(("password", password)) }
        return parameters + (security?.parameters ?? [("sslmode", "disable")])
    }
}
