package import ServiceKit

/// The settings of a process that calls tenants: allowed endpoints, own networks and trusted authorities.
package struct CalloutSettings: Sendable {
    private let prefix: String
    private let allowedHosts: SettingKey<[String]>
    private let ownNetworks: SettingKey<[String]>
    private let loopback: SettingKey<String>
    private let authority: SettingKey<String>

    /// - Parameter prefix: the prefix of their names, such as `MSS_VALIDATOR`.
    package init(prefix: String) {
        self.prefix = prefix
        allowedHosts = .list(
            "\(prefix)_ALLOWED_HOSTS",
            "the endpoints that may be called, comma-separated: name:port, address:port or range/prefix:port, http://"
                + " before it for plain http",
            example: "sessions.example.com:443,10.1.0.0/16:8443"
        ) { AllowedCallout($0) != nil }
        ownNetworks = .list(
            "\(prefix)_OWN_NETWORKS",
            "networks of this service's own tiers, which are never called, comma-separated",
            example: "10.0.1.0/24,fd00:1::/64"
        ) { IPRange($0) != nil }
        loopback = .choice("\(prefix)_LOOPBACK", of: ["never", "development"], default: "never")
        authority = .text(
            "\(prefix)_AUTHORITY_FILE", "PEM of the authorities of tenants' certificates, instead of the system's",
            example: "/etc/mss/tenants.pem", default: "")
    }

    /// The settings, for a process's list.
    package var keys: [AnySettingKey] {
        [allowedHosts.erased, ownNetworks.erased, loopback.erased, authority.erased]
    }

    /// The policy for endpoints.
    package func policy(_ settings: Settings) -> CalloutPolicy {
        CalloutPolicy(
            allowed: settings[allowedHosts].compactMap { AllowedCallout($0) },
            ownNetworks: settings[ownNetworks].compactMap { IPRange($0) },
            allowsLoopback: settings[loopback] == "development", prefix: prefix)
    }

    /// The file with the authorities of tenants' certificates; nil: the system's.
    package func authorityFile(_ settings: Settings) -> String? {
        settings[authority].isEmpty ? nil : settings[authority]
    }

    /// The problems of the authority file, for the process's start check.
    package func problems(_ settings: Settings) -> [String] {
        guard let file = authorityFile(settings), (try? TenantConnections.authorities(file)) == nil else { return [] }
        return [
            "\(authority.name): \(file) cannot be read as PEM certificates; check its path, permissions and content"
        ]
    }
}
