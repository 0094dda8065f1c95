/// The settings' rules for sources, origins and second factors.
struct EntryRules: Sendable {
    /// The console's origin for browsers, such as `https://console.example.com`; nil: the Host field of a request.
    var origin: String?
    /// Addresses of proxies whose `X-Forwarded-For` is trusted.
    var trustedProxies: Set<String> = []
    /// Whether an account that may change anything needs a second factor before it can do anything else.
    var requiresSecondFactor = false

    /// The source of a request: the peer's address, or behind trusted proxies the last address that is not a trusted
    /// proxy.
    ///
    /// - Parameters:
    ///   - peer: the address of the connection's peer.
    ///   - forwarded: `X-Forwarded-For`, to which each proxy appends the address of its client.
    func source(peer: String, forwarded: String?) -> String {
        let peer = Self.plain(peer)
        guard trustedProxies.contains(peer), let forwarded else { return peer }
        let way = forwarded.split(separator: ",").map { Self.plain(String($0).trimmed) }
        // The client can send any addresses before the one that the first trusted proxy appended.
        let nearest = way.reversed().first { !trustedProxies.contains($0) }
        return nearest.flatMap { Self.isAddress($0) ? $0 : nil } ?? peer
    }

    /// Writes an IPv4-mapped IPv6 address as IPv4.
    private static func plain(_ address: String) -> String {
        address.lowercased().hasPrefix("::ffff:") && address.contains(".")
            ? String(address.dropFirst("::ffff:".count)) : address
    }

    private static func isAddress(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 45
            && text.utf8.allSatisfy { "0123456789abcdefABCDEF:.".utf8.contains($0) }
    }
}
