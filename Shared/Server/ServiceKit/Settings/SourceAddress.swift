import Credentials
package import NIOCore

/// The source of a connection, as limits per source count it (SEC2).
///
/// Only the first 64 bits of IPv6 count, because one host owns all addresses of such a network. An IPv4-mapped IPv6
/// address counts as the IPv4 address.
package struct SourceAddress: Hashable, Sendable {
    private let bytes: [UInt8]

    /// - Parameter bytes: 4 bytes of IPv4 or 16 of IPv6. All other lengths count as one source.
    package init(bytes: [UInt8]) {
        switch bytes.count {
        case 4: self.bytes = bytes
        case 16 where bytes.prefix(12) == Self.mapped[...]: self.bytes = Array(bytes[12...])
        case 16: self.bytes = Array(bytes[..<8])
        default: self.bytes = []
        }
    }

    /// The peer's address. All unknown addresses count as one source.
    package init(_ address: SocketAddress?) { self.init(bytes: address?.sourceBytes ?? []) }

    /// An address as text, for example from a proxy. All invalid texts count as one source.
    package init(text: String) { self.init(try? SocketAddress(ipAddress: text, port: 0)) }

    /// A key for tables of limits, not an address for display.
    package var text: String {
        bytes.isEmpty ? "unknown" : HexText.of(bytes)
    }

    /// The prefix of IPv4-mapped IPv6 addresses.
    static let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xff, 0xff]
}

extension SocketAddress {
    /// The 4 or 16 bytes of the address; empty for a socket that is not IP.
    var sourceBytes: [UInt8] {
        switch self {
        // The offsets of the address in sockaddr_in and sockaddr_in6. The module of their fields differs between
        // systems.
        case .v4(let address): withUnsafeBytes(of: address.address) { Array($0[4..<8]) }
        case .v6(let address): withUnsafeBytes(of: address.address) { Array($0[8..<24]) }
        case .unixDomainSocket: []
        }
    }
}
