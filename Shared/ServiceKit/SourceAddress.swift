import Credentials
package import NIOCore

/// Where a connection comes from, as far as limits per source tell sources apart (reliability SEC2).
///
/// Of IPv6 the first 64 bits count: one host has all the addresses of such a network. An IPv4 address that is written
/// as an IPv6 one is the IPv4 address.
package struct SourceAddress: Hashable, Sendable {
    private let bytes: [UInt8]

    /// - Parameter bytes: 4 of IPv4 or 16 of IPv6; anything else is one source.
    package init(bytes: [UInt8]) {
        switch bytes.count {
        case 4: self.bytes = bytes
        case 16 where bytes.prefix(12) == Self.mapped[...]: self.bytes = Array(bytes[12...])
        case 16: self.bytes = Array(bytes[..<8])
        default: self.bytes = []
        }
    }

    /// The other side of a connection; an address that cannot be told counts as one source with all such.
    package init(_ address: SocketAddress?) { self.init(bytes: address?.sourceBytes ?? []) }

    /// An address as text, such as a proxy passes on; one that is none counts as one source with all such.
    package init(text: String) { self.init(try? SocketAddress(ipAddress: text, port: 0)) }

    /// The source in letters, for tables: what limits tell apart, not an address to show.
    package var text: String {
        bytes.isEmpty ? "unknown" : HexText.of(bytes)
    }

    /// What IPv4 addresses begin with that are written as IPv6 ones.
    static let mapped: [UInt8] = Array(repeating: 0, count: 10) + [0xff, 0xff]
}

extension SocketAddress {
    /// The 4 or 16 bytes of an address; none where it is no address of a network.
    var sourceBytes: [UInt8] {
        switch self {
        // Where sockaddr_in and sockaddr_in6 have the address; which module their fields belong to varies.
        case .v4(let address): withUnsafeBytes(of: address.address) { Array($0[4..<8]) }
        case .v6(let address): withUnsafeBytes(of: address.address) { Array($0[8..<24]) }
        case .unixDomainSocket: []
        }
    }
}
