/// The host and port of a gateway.
struct GatewayAddress: Hashable, Sendable {
    /// A host name or an address. The gateway's certificate must contain it.
    let host: String
    let port: Int

    init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// Reads `host:port` from a Close frame, with an IPv6 address in brackets. Returns nil for any other form.
    init?(text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (1...65_535).contains(port)
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty else { return nil }
        self.init(host: String(host), port: port)
    }
}
