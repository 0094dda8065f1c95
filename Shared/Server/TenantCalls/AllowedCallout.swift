import ServiceKit

/// One entry of the operator's list of endpoints (`MSS_…_ALLOWED_HOSTS`); pure.
///
/// `name:port`, `address:port` or `range/prefix:port`, with IPv6 in brackets. An entry allows https; with the prefix
/// `http://` it allows plain http instead.
package struct AllowedCallout: Hashable, Sendable {
    private enum Place: Hashable, Sendable {
        case name(String)
        case range(IPRange)
    }

    private let isHTTPS: Bool
    private let place: Place
    private let port: Int

    /// The value is nil for any other form.
    package init?(_ text: String) {
        isHTTPS = !text.hasPrefix("http://")
        let entry = text.drop(scheme: "http://").drop(scheme: "https://")
        guard let colon = entry.lastIndex(of: ":"), let port = try? CalloutURL.port(entry[entry.index(after: colon)...])
        else { return nil }
        self.port = port
        let host = entry[..<colon]
        let inner = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host
        if let range = IPRange(String(inner)) {
            // An IPv6 address must have brackets; other hosts must have none.
            guard inner.contains(":") == (inner.startIndex != host.startIndex) else { return nil }
            place = .range(range)
        } else if case .name(let name)? = try? CalloutURL.host(host) {
            place = .name(name)
        } else {
            return nil
        }
    }

    /// Whether the entry matches the URL.
    func covers(_ url: CalloutURL) -> Bool {
        guard isHTTPS == url.isHTTPS, port == url.port else { return false }
        return switch (place, url.host) {
        case (.name(let allowed), .name(let name)): allowed == name
        case (.range(let range), .address(let address)): range.contains(address)
        default: false
        }
    }

    /// Whether the entry contains this address and port.
    func covers(_ address: IPAddress, port: Int) -> Bool {
        guard case .range(let range) = place else { return false }
        return self.port == port && range.contains(address)
    }
}

extension StringProtocol {
    fileprivate func drop(scheme: String) -> SubSequence {
        hasPrefix(scheme) ? dropFirst(scheme.count) : self[...]
    }
}
