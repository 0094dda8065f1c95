package import ConnectionThread

/// The broker's addresses, the user, and the limits of one connection.
package struct AMQPConfiguration: Sendable {
    /// The nodes of the broker, at least one. Each attempt takes the next one; the first is drawn at random.
    package var addresses: [ServerAddress]
    package var user: String
    package var password: String
    package var virtualHost: String
    /// TLS settings; nil for an unencrypted connection.
    package var security: AMQPSecurity?
    /// The type of the durable queues that a client declares. It must be that of the queues at the broker.
    package var queueType: AMQPQueueType
    /// Shown by the broker's management tools.
    package var connectionName: String
    /// The broker sends something at least once in this interval. It drops a client that is silent for twice as long.
    /// Whole seconds.
    package var heartbeat: Duration
    /// The client drops a broker that is silent for this time.
    var silenceLimit: Duration { heartbeat * 3 / 2 }
    /// A route to a quorum queue, by which the client finds out that its node has lost the other nodes of a cluster.
    /// The queue must exist and drop old messages. A nil value means: no probes.
    package var probe: AMQPRoute?
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
        addresses: [ServerAddress], user: String, password: String, virtualHost: String = "/",
        security: AMQPSecurity? = nil, queueType: AMQPQueueType = .classic, connectionName: String = "mss",
        heartbeat: Duration = .seconds(10), probe: AMQPRoute? = nil, callLimit: Duration = .seconds(5),
        waitingBytesMax: Int = 16 << 20, packedBodyBytes: Int = 60_000, drainLimit: Duration = .seconds(5)
    ) {
        self.addresses = addresses
        self.user = user
        self.password = password
        self.virtualHost = virtualHost
        self.security = security
        self.queueType = queueType
        self.connectionName = connectionName
        self.heartbeat = heartbeat
        self.probe = probe
        self.callLimit = callLimit
        self.waitingBytesMax = waitingBytesMax
        self.packedBodyBytes = packedBodyBytes
        self.drainLimit = drainLimit
    }

    /// A broker of one node.
    package init(
        host: String, port: Int, user: String, password: String, virtualHost: String = "/",
        security: AMQPSecurity? = nil
    ) {
        self.init(
            addresses: [ServerAddress(host: host, port: port)], user: user, password: password,
            virtualHost: virtualHost, security: security)
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
