import ServiceKit
import SyncModel

/// Settings of the session validator.
enum ValidatorSettings {
    /// How long one call to a tenant may take in all.
    static let timeout = SettingKey<Duration>.milliseconds("MSS_VALIDATOR_TIMEOUT_MS", in: 100...7_000, default: 3_000)
    /// The tenants' endpoints that may be called.
    static let allowedHosts = SettingKey<[String]>.list(
        "MSS_VALIDATOR_ALLOWED_HOSTS",
        "the endpoints that may be called, comma-separated: name:port, address:port or range/prefix:port, http://"
            + " before it for plain http",
        example: "sessions.example.com:443,10.1.0.0/16:8443"
    ) { AllowedCallout($0) != nil }
    /// Where nothing is ever called.
    static let ownNetworks = SettingKey<[String]>.list(
        "MSS_VALIDATOR_OWN_NETWORKS", "networks of this service's own tiers, which are never called, comma-separated",
        example: "10.0.1.0/24,fd00:1::/64"
    ) { IPRange($0) != nil }
    /// Whether tenants may run on this machine.
    static let allowsLoopback = SettingKey<String>.choice(
        "MSS_VALIDATOR_LOOPBACK", of: ["never", "development"], default: "never")
    /// Who signs tenants' certificates.
    static let authorityFile = SettingKey<String>.text(
        "MSS_VALIDATOR_AUTHORITY_FILE", "PEM of the authorities of tenants' certificates, instead of the system's",
        example: "/etc/mss/tenants.pem", default: "")
    /// Calls under way per tenant.
    static let tenantConcurrency = SettingKey<Int>.integer(
        "MSS_VALIDATOR_TENANT_CONCURRENCY", in: 1...1_000, default: 32)

    static let keys = [
        timeout.erased, allowedHosts.erased, ownNetworks.erased, allowsLoopback.erased, authorityFile.erased,
        tenantConcurrency.erased, KeyRingSetting.sealing(for: .callout).erased,
    ]

    /// What is wrong with the file of authorities, for whoever starts the process.
    static func problems(_ settings: Settings) -> [String] {
        let file = settings[authorityFile]
        guard !file.isEmpty, (try? TenantConnections.authorities(file)) == nil else { return [] }
        return [
            "MSS_VALIDATOR_AUTHORITY_FILE: \(file) cannot be read as PEM certificates; check its path, its rights "
                + "and what is in it"
        ]
    }
}

extension SessionEndpoint {
    /// The endpoint as the settings want it.
    init(_ settings: Settings) throws {
        let authorityFile = settings[ValidatorSettings.authorityFile]
        try self.init(
            limit: settings[ValidatorSettings.timeout],
            policy: CalloutPolicy(
                allowed: settings[ValidatorSettings.allowedHosts].compactMap { AllowedCallout($0) },
                ownNetworks: settings[ValidatorSettings.ownNetworks].compactMap { IPRange($0) },
                allowsLoopback: settings[ValidatorSettings.allowsLoopback] == "development"),
            authorityFile: authorityFile.isEmpty ? nil : authorityFile)
    }
}
