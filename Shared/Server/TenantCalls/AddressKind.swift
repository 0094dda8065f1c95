import ServiceKit

/// The kind of an address, for the decision on a callout (SEC12); pure.
///
/// Sources: the IANA registries of special-purpose addresses (RFC 6890 and updates) and the documents of cloud
/// providers.
enum AddressKind: Hashable, Sendable {
    /// Globally reachable; a name that an operator allows may have it.
    case global
    /// The address belongs to a private network; callable only when an operator lists the address or its range.
    case `private`
    /// This machine; like `private`, and only in development.
    case loopback
    /// Never callable, with the reason.
    case denied(String)

    /// The kind of an address.
    init(_ address: IPAddress) {
        let row = (address.isIPv6 ? Self.ipv6 : Self.ipv4).first { $0.range.contains(address) }
        self = row?.kind ?? (address.isIPv6 ? .denied("an IPv6 address outside of global unicast") : .global)
    }

    private static let ipv4 = table([
        ("0.0.0.0/8", .denied("the unspecified address")),
        ("10.0.0.0/8", .private),
        ("100.100.100.200", .denied("a cloud's metadata service")),
        ("100.64.0.0/10", .private),
        ("127.0.0.0/8", .loopback),
        ("169.254.0.0/16", .denied("a link-local address, where clouds have their metadata service")),
        ("172.16.0.0/12", .private),
        ("192.0.0.0/24", .denied("a special-purpose address")),
        ("192.0.2.0/24", .denied("an address for documents")),
        ("192.88.99.0/24", .denied("a relay of 6to4")),
        ("192.168.0.0/16", .private),
        ("198.18.0.0/15", .denied("an address for benchmarks")),
        ("198.51.100.0/24", .denied("an address for documents")),
        ("203.0.113.0/24", .denied("an address for documents")),
        ("168.63.129.16", .denied("a cloud's metadata service")),
        ("224.0.0.0/4", .denied("a multicast address")),
        ("240.0.0.0/4", .denied("a reserved or broadcast address")),
    ])

    // The first matching row counts.
    private static let ipv6 = table([
        ("::", .denied("the unspecified address")),
        ("::1", .loopback),
        ("::ffff:0:0/96", .denied("an IPv4 address in IPv6 form (mapped)")),
        ("64:ff9b::/96", .denied("an IPv4 address in IPv6 form (NAT64)")),
        ("64:ff9b:1::/48", .denied("an IPv4 address in IPv6 form (NAT64)")),
        ("2001::/32", .denied("an IPv4 address in IPv6 form (Teredo)")),
        ("2001::/23", .denied("a special-purpose address")),
        ("2001:db8::/32", .denied("an address for documents")),
        ("2002::/16", .denied("an IPv4 address in IPv6 form (6to4)")),
        ("3fff::/20", .denied("an address for documents")),
        ("2000::/3", .global),
        ("fd00:ec2::/32", .denied("a cloud's metadata service")),
        ("fd20:ce::/32", .denied("a cloud's metadata service")),
        ("fc00::/7", .private),
        ("fe80::/10", .denied("a link-local address")),
        ("ff00::/8", .denied("a multicast address")),
    ])

    private static func table(_ rows: [(String, AddressKind)]) -> [(range: IPRange, kind: AddressKind)] {
        rows.map { text, kind in
            guard let range = IPRange(text) else { preconditionFailure("\(text) is no range") }
            return (range, kind)
        }
    }
}
