/// The addresses that share a prefix, as `10.0.0.0/8` or `fd00::/8`; pure.
package struct IPRange: Hashable, Sendable {
    private let base: IPAddress
    private let prefix: Int

    /// Reads CIDR, or one address. Nil when there are bits behind the prefix: that is a slip of the pen.
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

    /// Whether an address of the same family lies in it.
    package func contains(_ address: IPAddress) -> Bool {
        address.isIPv6 == base.isIPv6 && Self.network(of: address, prefix) == base.bits
    }

    private static func network(of address: IPAddress, _ prefix: Int) -> UInt128 {
        let shift = address.width - prefix
        // A shift by the whole width gives 0, which is what /0 wants.
        return (address.bits >> shift) << shift
    }
}
