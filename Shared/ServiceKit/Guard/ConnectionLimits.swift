package import NIOCore

/// How long a caller's connection may stay in each state, and how much of a head it may send.
package struct ConnectionLimits: Hashable, Sendable {
    /// From the connection to the end of the TLS handshake (reliability SEC2).
    package var handshake = TimeAmount.seconds(5)
    /// From the first byte of a head to its end (reliability SEC3).
    package var head = TimeAmount.seconds(5)
    /// From the end of a head to the end of the body (reliability SEC3).
    package var body = TimeAmount.seconds(10)
    /// Between requests (reliability SEC3).
    package var idle = TimeAmount.seconds(60)
    /// While an answer is worked on; longer than any submission takes.
    package var answer = TimeAmount.seconds(30)
    /// From an answer written to the caller having taken it (reliability SEC3).
    package var stall = TimeAmount.seconds(30)
    /// Between requests once the process stops: for the call of a caller who keeps the connection (reliability R11).
    package var drain = TimeAmount.seconds(3)
    /// After an answer that closes, for the caller to read it before the socket goes.
    package var linger = TimeAmount.seconds(1)
    /// Bytes of all header fields, URI included (reliability SEC4).
    package var headBytes = 16_384
    /// Header fields (reliability SEC4).
    package var headerFields = 100
    /// Connections at one time; more wait in the backlog.
    package var connections = 8_192
    /// Connections of one source at one time; more are answered 503 (reliability SEC3).
    package var sourceConnections = 1_024

    package init() {}
}
