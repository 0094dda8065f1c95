package import NIOCore

/// The networks that plain HTTP is taken from, beside this machine; pure.
///
/// The connection's own address decides. No header and no proxy can make it another.
package struct PlainHTTPNetworks: Sendable {
    private let ranges: [IPRange]
    private static let loopback = ["127.0.0.0/8", "::1"].compactMap { IPRange($0) }

    /// What a caller from elsewhere is told.
    package static let refusal =
        "Plain HTTP is not taken from this address; call https, or have its network added to MSS_INGEST_PLAIN_HTTP_NETWORKS."

    package init(_ ranges: [IPRange]) { self.ranges = ranges + Self.loopback }

    /// Whether a connection from this address may go on.
    package func allow(_ address: SocketAddress?) -> Bool {
        guard let address = IPAddress(address) else { return false }
        return ranges.contains { $0.contains(address) }
    }
}
