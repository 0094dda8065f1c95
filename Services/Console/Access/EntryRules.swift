/// What the settings say about who may come in, and from where.
struct EntryRules: Sendable {
    /// As browsers see the console, such as `https://console.example.com`; nil: as the Host field of a request says.
    var origin: String?
    /// Addresses of proxies whose word about where a request comes from counts.
    var trustedProxies: Set<String> = []
    /// Whoever may change anything needs a second factor, and is led to it before anything else.
    var requiresSecondFactor = false

    /// Where a request comes from: the other side's address, or, behind proxies that are trusted, the nearest one that is
    /// not one of theirs.
    ///
    /// - Parameters:
    ///   - peer: the connection's other side.
    ///   - forwarded: `X-Forwarded-For`, to which each proxy has added where it got the request from.
    func source(peer: String, forwarded: String?) -> String {
        let peer = Self.plain(peer)
        guard trustedProxies.contains(peer), let forwarded else { return peer }
        let way = forwarded.split(separator: ",").map { Self.plain(String($0).trimmed) }
        // What stands further left was said by whoever asked, and may be anything.
        let nearest = way.reversed().first { !trustedProxies.contains($0) }
        return nearest.flatMap { Self.isAddress($0) ? $0 : nil } ?? peer
    }

    /// An IPv4 address that is written as an IPv6 one is the IPv4 address.
    private static func plain(_ address: String) -> String {
        address.lowercased().hasPrefix("::ffff:") && address.contains(".")
            ? String(address.dropFirst("::ffff:".count)) : address
    }

    private static func isAddress(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.count <= 45
            && text.utf8.allSatisfy { "0123456789abcdefABCDEF:.".utf8.contains($0) }
    }
}
