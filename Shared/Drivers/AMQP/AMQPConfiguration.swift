/// The broker's address, the user, and the limits of one connection.
package struct AMQPConfiguration: Sendable {
    package var host: String
    package var port: Int
    package var user: String
    package var password: String
    package var virtualHost: String
    /// TLS settings; nil for an unencrypted connection.
    package var security: AMQPSecurity?
    /// Shown by the broker's management tools.
    package var connectionName: String
    /// Each side drops a silent peer after twice this interval; whole seconds.
    package var heartbeat: Duration
    /// The longest call of the C library. After it, the socket is shut down: the library can block without limit when
    /// the broker does not read.
    package var callLimit: Duration
    /// Bytes that may wait to be written; beyond this, `send` throws.
    package var waitingBytesMax: Int
    /// Waiting bodies of one route are written as one body up to this size.
    package var packedBodyBytes: Int
    /// On shutdown, the time to acknowledge consumed messages.
    package var drainLimit: Duration

    package init(
        host: String, port: Int, user: String, password: String, virtualHost: String = "/",
        security: AMQPSecurity? = nil, connectionName: String = "mss", heartbeat: Duration = .seconds(10),
        callLimit: Duration = .seconds(5),
        waitingBytesMax: Int = 16 << 20, packedBodyBytes: Int = 60_000, drainLimit: Duration = .seconds(5)
    ) {
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.virtualHost = virtualHost
        self.security = security
        self.connectionName = connectionName
        self.heartbeat = heartbeat
        self.callLimit = callLimit
        self.waitingBytesMax = waitingBytesMax
        self.packedBodyBytes = packedBodyBytes
        self.drainLimit = drainLimit
    }
}

/// TLS 1.2 or newer to the broker. The broker's certificate must be signed by the authority and name the host.
///
/// The files are read at each connect, so a renewed certificate needs no restart. The C library compares the host only
/// with the certificate's DNS names, so the host must be a name, not an address.
package struct AMQPSecurity: Sendable {
    /// A PEM file with the authorities for the broker's certificate.
    package var authorityFile: String
    /// A PEM file with a client certificate, for a broker that requires one; empty: none.
    package var certificateFile: String
    /// A PEM file with the certificate's key; empty without a certificate.
    package var privateKeyFile: String

    package init(authorityFile: String, certificateFile: String = "", privateKeyFile: String = "") {
        self.authorityFile = authorityFile
        self.certificateFile = certificateFile
        self.privateKeyFile = privateKeyFile
    }
}
