import ServiceKit

/// Settings of the session validator.
enum ValidatorSettings {
    /// How long one call to a tenant may take in all.
    static let timeout = SettingKey<Duration>.milliseconds("MSS_VALIDATOR_TIMEOUT_MS", in: 100...7_000, default: 3_000)
    /// The tenants' endpoints that may be called.
    static let allowedHosts = SettingKey<[String]>.list(
        "MSS_VALIDATOR_ALLOWED_HOSTS", "the hosts that may be called, host:port each, comma-separated",
        example: "sessions.example.com:443,10.1.2.3:8080")
    /// Calls under way per tenant.
    static let tenantConcurrency = SettingKey<Int>.integer(
        "MSS_VALIDATOR_TENANT_CONCURRENCY", in: 1...1_000, default: 32)

    static let keys = [timeout.erased, allowedHosts.erased, tenantConcurrency.erased]
}
