/// Where the broker is, who connects, and the bounds of one connection.
package struct AMQPConfiguration: Sendable {
    package var host: String
    package var port: Int
    package var user: String
    package var password: String
    package var virtualHost: String
    /// How the broker is believed; nil for a connection in the clear.
    package var security: AMQPSecurity?
    /// Shown by the broker's own tools.
    package var connectionName: String
    /// Both sides give up on a silent peer after twice this; whole seconds.
    package var heartbeat: Duration
    /// A call into the C library that takes longer has its socket shut: the library can block without limit when the
    /// broker does not read.
    package var callLimit: Duration
    /// Bytes that may wait to be written; beyond this `send` refuses.
    package var waitingBytesMax: Int
    /// Waiting bodies of one route are written as one body up to this size.
    package var packedBodyBytes: Int
    /// On shutdown, how long consumed messages may take to be settled.
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
