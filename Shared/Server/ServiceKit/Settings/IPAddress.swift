package import Glibc
package import NIOCore

/// An IPv4 or IPv6 address as a number. Two spellings of one address are equal, and a range can contain it; pure.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address, right-aligned: an IPv4 address has 32 bits.
    package let bits: UInt128
    package let isIPv6: Bool

    /// - Parameter bits: at most 32 bits for IPv4.
    package init(bits: UInt128, isIPv6: Bool) {
        self.bits = bits
        self.isIPv6 = isIPv6
    }

    /// Reads IPv4 as four decimal numbers without leading zeros, the form that all readers read alike, and the forms of
    /// IPv6 in RFC 4291 §2.2, without a zone.
    package init?(_ text: String) {
        if text.contains(":") {
            var address = in6_addr()
            guard inet_pton(AF_INET6, text, &address) == 1 else { return nil }
            self.init(address)
            return
        }
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var bits: UInt128 = 0
        for part in parts {
            guard part.count <= 3, part.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = UInt8(part),
                part.count == 1 || part.first != "0"
            else { return nil }
            bits = bits << 8 | UInt128(number)
        }
        self.init(bits: bits, isIPv6: false)
    }

    /// Converts an address of the resolver.
    package init(_ address: in6_addr) {
        self.init(bits: withUnsafeBytes(of: address) { $0.reduce(0) { $0 << 8 | UInt128($1) } }, isIPv6: true)
    }

    /// Converts an address of the resolver.
    package init(_ address: in_addr) {
        self.init(bits: UInt128(UInt32(bigEndian: address.s_addr)), isIPv6: false)
    }

    /// The peer's address; nil without one. An IPv4-mapped IPv6 address becomes the IPv4 address.
    package init?(_ address: SocketAddress?) {
        guard let address else { return nil }
        let bytes = address.sourceBytes
        let isMapped = bytes.count == 16 && bytes.prefix(12) == SourceAddress.mapped[...]
        let own = isMapped ? bytes.suffix(4) : bytes[...]
        guard own.count == 4 || own.count == 16 else { return nil }
        self.init(bits: own.reduce(0) { $0 << 8 | UInt128($1) }, isIPv6: own.count == 16)
    }

    /// How many bits an address of this family has.
    package var width: Int { isIPv6 ? 128 : 32 }

    /// The 4 or 16 bytes in network byte order.
    var bytes: [UInt8] {
        stride(from: width - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: bits >> $0) }
    }

    /// Four decimal numbers, or eight hexadecimal groups: every parser reads these forms.
    package var description: String {
        isIPv6
            ? stride(from: 112, through: 0, by: -16).map { String(UInt16(truncatingIfNeeded: bits >> $0), radix: 16) }
                .joined(separator: ":")
            : stride(from: 24, through: 0, by: -8).map { String(UInt8(truncatingIfNeeded: bits >> $0)) }
                .joined(separator: ".")
    }
}

/// The addresses that share a prefix, as `10.0.0.0/8` or `fd00::/8`; pure.
package struct IPRange: Hashable, Sendable {
    private let base: IPAddress
    private let prefix: Int

    /// Reads CIDR or a single address. The value is nil also when bits after the prefix are set, because that is a
    /// typing error.
    package init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let base = IPAddress(String(parts[0])) else { return nil }
        var prefix = base.width
        if parts.count == 2 {
            guard let given = Int(parts[1]), (0...base.width).contains(given), String(given) == parts[1] else {
                return nil
            }
            prefix = given
        }
        self.base = base
        self.prefix = prefix
        guard Self.network(of: base, prefix) == base.bits else { return nil }
    }

    /// Whether the range contains the address; false for the other address family.
    package func contains(_ address: IPAddress) -> Bool {
        address.isIPv6 == base.isIPv6 && Self.network(of: address, prefix) == base.bits
    }

    private static func network(of address: IPAddress, _ prefix: Int) -> UInt128 {
        let shift = address.width - prefix
        // A shift by the whole width gives 0, which is correct for /0.
        return (address.bits >> shift) << shift
    }
}
