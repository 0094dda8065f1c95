import ServiceKit
import SyncModel
import TenantCalls

/// Settings of the session validator.
enum ValidatorSettings {
    /// How long one call to a tenant may take in all.
    static let timeout = SettingKey<Duration>.milliseconds("MSS_VALIDATOR_TIMEOUT_MS", in: 100...7_000, default: 3_000)
    /// Where tenants may be called.
    static let callouts = CalloutSettings(prefix: "MSS_VALIDATOR")
    /// Calls under way per tenant.
    static let tenantConcurrency = SettingKey<Int>.integer(
        "MSS_VALIDATOR_TENANT_CONCURRENCY", in: 1...1_000, default: 32)

    static let keys =
        [timeout.erased] + callouts.keys
        + [tenantConcurrency.erased, KeyRingSetting.sealing(for: .callout).erased]

    /// What is wrong with the file of authorities, for whoever starts the process.
    static func problems(_ settings: Settings) -> [String] { callouts.problems(settings) }
}

extension SessionEndpoint {
    /// The endpoint as the settings want it.
    init(_ settings: Settings) throws {
        try self.init(
            limit: settings[ValidatorSettings.timeout], policy: ValidatorSettings.callouts.policy(settings),
            authorityFile: ValidatorSettings.callouts.authorityFile(settings))
    }
}
