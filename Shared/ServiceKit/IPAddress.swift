package import Glibc
package import NIOCore

/// An IPv4 or IPv6 address as a number, so that it can be compared with ranges however it was spelled; pure.
package struct IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// The address, right-aligned: an IPv4 address has 32 bits.
    package let bits: UInt128
    package let isIPv6: Bool

    /// - Parameter bits: at most 32 of them for IPv4.
    package init(bits: UInt128, isIPv6: Bool) {
        self.bits = bits
        self.isIPv6 = isIPv6
    }

    /// Reads the one form of IPv4 that nobody reads differently (four decimal numbers without leading zeros) and the
    /// forms of IPv6 of RFC 4291 §2.2, without a zone.
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

    /// As the resolver gives it.
    package init(_ address: in6_addr) {
        self.init(bits: withUnsafeBytes(of: address) { $0.reduce(0) { $0 << 8 | UInt128($1) } }, isIPv6: true)
    }

    /// As the resolver gives it.
    package init(_ address: in_addr) {
        self.init(bits: UInt128(UInt32(bigEndian: address.s_addr)), isIPv6: false)
    }

    /// The other side of a connection; an IPv4 address that is written as an IPv6 one is the IPv4 address. Nil: there is
    /// none.
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

    /// Its 4 or 16 bytes, as they travel.
    var bytes: [UInt8] {
        stride(from: width - 8, through: 0, by: -8).map { UInt8(truncatingIfNeeded: bits >> $0) }
    }

    /// Decimal numbers, or eight groups of hexadecimal ones: readable by every parser.
    package var description: String {
        isIPv6
            ? stride(from: 112, through: 0, by: -16).map { String(UInt16(truncatingIfNeeded: bits >> $0), radix: 16) }
                .joined(separator: ":")
            : stride(from: 24, through: 0, by: -8).map { String(UInt8(truncatingIfNeeded: bits >> $0)) }
                .joined(separator: ".")
    }
}
