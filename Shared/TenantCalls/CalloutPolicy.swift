package import ServiceKit

/// Which endpoints may be called (spec V7, reliability §4 SEC12); pure. Nothing may, unless an operator says so.
///
/// 1. An entry must be for the URL's scheme, host and port.
/// 2. Each address of the host must be callable: global ones are; private ones where an entry names the address or its
///    range with this port; loopback ones likewise, and only in development; those of this service's own networks and
///    of special purpose never.
package struct CalloutPolicy: Sendable {
    private let allowed: [AllowedCallout]
    private let ownNetworks: [IPRange]
    private let allowsLoopback: Bool
    /// How the settings begin that a refusal names.
    private let prefix: String

    /// - Parameters:
    ///   - ownNetworks: where this service's own tiers are.
    ///   - allowsLoopback: in development, where tenants run beside us.
    ///   - prefix: how the settings begin that a refusal names.
    package init(
        allowed: [AllowedCallout], ownNetworks: [IPRange] = [], allowsLoopback: Bool = false,
        prefix: String = "MSS_VALIDATOR"
    ) {
        self.prefix = prefix
        self.allowed = allowed
        self.ownNetworks = ownNetworks
        self.allowsLoopback = allowsLoopback
    }

    /// The URL, read and found to be allowed as it is written; its addresses are still to be checked.
    func url(_ text: String) throws(CalloutRefusal) -> CalloutURL {
        let url = try CalloutURL(text)
        guard allowed.contains(where: { $0.covers(url) }) else {
            throw CalloutRefusal("no entry of \(prefix)_ALLOWED_HOSTS is for this scheme, host and port")
        }
        if case .address(let address) = url.host { try check(address, port: url.port) }
        return url
    }

    /// Checks every address that a host was resolved to: one that is not callable spoils them all.
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
