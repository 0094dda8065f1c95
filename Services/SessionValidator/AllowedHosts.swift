import Foundation

/// The hosts that an operator lets this process call (spec V7); pure. Nothing is allowed by default.
struct AllowedHosts: Sendable {
    private let entries: Set<String>

    /// - Parameter entries: `host:port` each, as an operator writes them.
    init(_ entries: [String]) { self.entries = Set(entries.map { $0.lowercased() }) }

    /// Whether a session endpoint may be called: http or https, no user in the URL, host and port exactly as allowed.
    /// A name is allowed, whatever address it has: who names a host here trusts its DNS.
    func allows(_ url: String) -> Bool {
        guard
            let url = URL(string: url), let scheme = url.scheme?.lowercased(), let host = url.host, !host.isEmpty,
            url.user == nil, url.password == nil
        else { return false }
        let standardPort: Int
        switch scheme {
        case "http": standardPort = 80
        case "https": standardPort = 443
        default: return false
        }
        let name = host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host
        return entries.contains("\(name.lowercased()):\(url.port ?? standardPort)")
    }
}
