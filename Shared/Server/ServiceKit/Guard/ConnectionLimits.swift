package import NIOCore
import Synchronization

/// The longest time of a caller's connection in each state, and the largest request head.
package struct ConnectionLimits: Hashable, Sendable {
    /// From the connection to the end of the TLS handshake (SEC2).
    package var handshake = TimeAmount.seconds(5)
    /// From the first byte of a head to its end (SEC3).
    package var head = TimeAmount.seconds(5)
    /// From the end of a head to the end of the body (SEC3).
    package var body = TimeAmount.seconds(10)
    /// Between requests (SEC3).
    package var idle = TimeAmount.seconds(60)
    /// From the end of a request to its response; longer than any submission takes.
    package var answer = TimeAmount.seconds(30)
    /// From a written response until the caller has received it (SEC3).
    package var stall = TimeAmount.seconds(30)
    /// Between requests while the process shuts down, so that a kept connection can finish its next call (R11).
    package var drain = TimeAmount.seconds(3)
    /// After the last response, so that the caller can read it before the socket is closed.
    package var linger = TimeAmount.seconds(1)
    /// Total bytes of the URI and all header fields (SEC4).
    package var headBytes = 16_384
    /// Number of header fields (SEC4).
    package var headerFields = 100
    /// Concurrent connections; more wait in the listen backlog.
    package var connections = 8_192
    /// Concurrent connections of one source; more receive 503 (SEC3).
    package var sourceConnections = 1_024

    package init() {}
}

/// Counts the open connections of each source, so that one source cannot use up the connections of all (SEC3).
package final class SourceConnections: Sendable {
    private let maximum: Int
    private let open = Mutex<[SourceAddress: Int]>([:])

    /// - Parameter maximum: connections of one source.
    package init(maximum: Int) { self.maximum = maximum }

    /// Counts a connection until it closes. False: its source has reached the maximum, and the connection is not
    /// counted.
    package func register(_ channel: any Channel) -> Bool {
        let source = SourceAddress(channel.remoteAddress)
        let isRegistered = open.withLock { open in
            guard open[source, default: 0] < maximum else { return false }
            open[source, default: 0] += 1
            return true
        }
        if isRegistered { channel.closeFuture.whenComplete { _ in self.unregister(source) } }
        return isRegistered
    }

    /// The number of sources with open connections.
    package var count: Int { open.withLock { $0.count } }

    private func unregister(_ source: SourceAddress) {
        open.withLock { open in
            let rest = open[source, default: 1] - 1
            open[source] = rest == 0 ? nil : rest
        }
    }
}
