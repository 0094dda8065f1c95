import ServiceKit

/// One entry of the operator's list of endpoints (`MSS_…_ALLOWED_HOSTS`); pure.
///
/// `name:port`, `address:port` or `range/prefix:port`, IPv6 in brackets. An entry is for https, unless it begins with
/// `http://`: then it is for plain http.
package struct AllowedCallout: Hashable, Sendable {
    private enum Place: Hashable, Sendable {
        case name(String)
        case range(IPRange)
    }

    private let isHTTPS: Bool
    private let place: Place
    private let port: Int

    /// Nil when it has none of the forms.
    package init?(_ text: String) {
        isHTTPS = !text.hasPrefix("http://")
        let entry = text.drop(scheme: "http://").drop(scheme: "https://")
        guard let colon = entry.lastIndex(of: ":"), let port = try? CalloutURL.port(entry[entry.index(after: colon)...])
        else { return nil }
        self.port = port
        let host = entry[..<colon]
        let inner = host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host
        if let range = IPRange(String(inner)) {
            // Brackets and colons go together.
            guard inner.contains(":") == (inner.startIndex != host.startIndex) else { return nil }
            place = .range(range)
        } else if case .name(let name)? = try? CalloutURL.host(host) {
            place = .name(name)
        } else {
            return nil
        }
    }

    /// Whether it is for the URL as it is written.
    func covers(_ url: CalloutURL) -> Bool {
        guard isHTTPS == url.isHTTPS, port == url.port else { return false }
        return switch (place, url.host) {
        case (.name(let allowed), .name(let name)): allowed == name
        case (.range(let range), .address(let address)): range.contains(address)
        default: false
        }
    }

    /// Whether it names this address and port, by itself or by its range.
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
