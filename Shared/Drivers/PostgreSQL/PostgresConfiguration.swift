package import ConnectionThread

/// The server's addresses, the user, and limits that the server enforces on this session.
package struct PostgresConfiguration: Sendable {
    /// The servers of one cluster, at least one. With several, a connection takes the one that accepts writes.
    package var addresses: [ServerAddress]
    package var database: String
    package var user: String
    /// The value is nil if the server requires none.
    package var password: String?
    /// TLS settings; nil for an unencrypted connection.
    package var security: PostgresSecurity?
    /// Shown in the server's views.
    package var applicationName: String
    package var connectTimeout: Duration
    /// The server ends a statement after this long.
    package var statementTimeout: Duration
    /// The server ends a statement that waited this long for a lock.
    package var lockTimeout: Duration
    /// The server ends a session that is idle in a transaction this long, because its locks block others.
    package var idleInTransactionTimeout: Duration

    package init(
        addresses: [ServerAddress], database: String, user: String, password: String? = nil,
        security: PostgresSecurity? = nil, applicationName: String = "mss", connectTimeout: Duration = .seconds(5),
        statementTimeout: Duration = .seconds(5), lockTimeout: Duration = .seconds(1),
        idleInTransactionTimeout: Duration = .seconds(2)
    ) {
        self.addresses = addresses
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

    /// One server.
    package init(
        host: String, port: Int, database: String, user: String, password: String? = nil,
        security: PostgresSecurity? = nil, applicationName: String = "mss", statementTimeout: Duration = .seconds(5)
    ) {
        self.init(
            addresses: [ServerAddress(host: host, port: port)], database: database, user: user, password: password,
            security: security, applicationName: applicationName, statementTimeout: statementTimeout)
    }

    /// All addresses as one text, for messages.
    package var servers: String { addresses.map(\.description).joined(separator: ",") }

    /// The libpq parameters (libpq: Parameter Key Words). Kerberos is disabled: it would look for a ticket at each
    /// connect and replace TLS if it found one. It also frees its locks at exit while threads use them.
    func parameters(for address: ServerAddress) -> [(String, String)] {
        func milliseconds(_ duration: Duration) -> Int64 {
            duration.components.seconds * 1_000 + duration.components.attoseconds / 1_000_000_000_000_000
        }
        let options = [
            "statement_timeout=\(milliseconds(statementTimeout))", "lock_timeout=\(milliseconds(lockTimeout))",
            "idle_in_transaction_session_timeout=\(milliseconds(idleInTransactionTimeout))",
            "client_connection_check_interval=1000", "tcp_user_timeout=5000",
        ]
        var parameters = [
            ("host", address.host), ("port", String(address.port)), ("dbname", database), ("user", user),
            ("application_name", applicationName), ("client_encoding", "UTF8"), ("gssencmode", "disable"),
            ("tcp_user_timeout", "5000"),
            ("keepalives_idle", "5"), ("keepalives_interval", "2"), ("keepalives_count", "3"),
            ("options", options.map { "-c \($0)" }.joined(separator: " ")),
        ]
        if addresses.count > 1 { parameters.append(("target_session_attrs", "read-write")) }
        if let password { parameters.append(("password", password)) }
        return parameters + (security?.parameters ?? [("sslmode", "disable")])
    }
}

/// TLS 1.2 or newer to the server. The server's certificate must be signed by the authority and name the host (libpq:
/// SSL Support, `verify-full`).
///
/// The files are read at each connect, so a renewed certificate needs no restart.
package struct PostgresSecurity: Sendable {
    /// A PEM file with the authorities for the server's certificate.
    package var authorityFile: String
    /// A PEM file with a client certificate, for a server that requires one; empty: none.
    package var certificateFile: String
    /// A PEM file with the certificate's key; empty without a certificate. Only its owner, or root and a group, may
    /// have read permission.
    package var privateKeyFile: String

    package init(authorityFile: String, certificateFile: String = "", privateKeyFile: String = "") {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
    }

    /// The libpq parameters (libpq: Parameter Key Words).
    var parameters: [(String, String)] {
        var parameters = [
            ("sslmode", "verify-full"), ("sslrootcert", authorityFile), ("ssl_min_protocol_version", "TLSv1.2"),
        ]
        if !certificateFile.isEmpty {
            parameters += [("sslcert", certificateFile), ("sslkey", privateKeyFile)]
        }
        return parameters
    }
}
