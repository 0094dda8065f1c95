package import ServiceKit

/// The endpoints that may be called (V7, SEC12); pure. Without an operator's entry, none may be called.
///
/// 1. An entry must match the URL's scheme, host and port.
/// 2. Each address of the host must be callable. Global addresses are. A private address needs an entry with the
/// address or its range and this port. A loopback address needs the same, and development. Addresses in this service's
/// own networks and special-purpose addresses are never callable.
package struct CalloutPolicy: Sendable {
    private let allowed: [AllowedCallout]
    private let ownNetworks: [IPRange]
    private let allowsLoopback: Bool
    /// The prefix of the settings that a refusal names.
    private let prefix: String

    /// - Parameters:
    ///   - ownNetworks: the networks of this service's own tiers.
    ///   - allowsLoopback: true in development, where tenants run on the same machine.
    ///   - prefix: the prefix of the settings that a refusal names.
    package init(
        allowed: [AllowedCallout], ownNetworks: [IPRange] = [], allowsLoopback: Bool = false,
        prefix: String = "MSS_VALIDATOR"
    ) {
        self.prefix = prefix
        self.allowed = allowed
        self.ownNetworks = ownNetworks
        self.allowsLoopback = allowsLoopback
    }

    /// Reads a URL and checks it against the entries. The addresses of a host name are still to be checked.
    func url(_ text: String) throws(CalloutRefusal) -> CalloutURL {
        let url = try CalloutURL(text)
        guard allowed.contains(where: { $0.covers(url) }) else {
            throw CalloutRefusal("no entry of \(prefix)_ALLOWED_HOSTS is for this scheme, host and port")
        }
        if case .address(let address) = url.host { try check(address, port: url.port) }
        return url
    }

    /// Checks all addresses of a host. One address that is not callable refuses them all.
    func check(_ addresses: [IPAddress], port: Int) throws(CalloutRefusal) {
        guard !addresses.isEmpty else { throw CalloutRefusal("the host has no address") }
        for address in addresses { try check(address, port: port) }
    }

    private func check(_ address: IPAddress, port: Int) throws(CalloutRefusal) {
        guard !ownNetworks.contains(where: { $0.contains(address) }) else {
            throw CalloutRefusal("\(address) is in this service's own networks (\(prefix)_OWN_NETWORKS)")
        }
        switch AddressKind(address) {
        case .global: return
        case .denied(let reason): throw CalloutRefusal("\(address) is \(reason)")
        case .loopback where !allowsLoopback: throw CalloutRefusal("\(address) is this machine")
        case .loopback, .private:
            guard allowed.contains(where: { $0.covers(address, port: port) }) else {
                throw CalloutRefusal(
                    "\(address) is private, and no entry of \(prefix)_ALLOWED_HOSTS names it with port \(port)")
            }
        }
    }
}

/// Why a tenant's endpoint must not be called, for the operator's log. It names no session and no user.
package struct CalloutRefusal: Error, Hashable, CustomStringConvertible {
    package let reason: String
    package var description: String { reason }

    init(_ reason: String) { self.reason = reason }
}
