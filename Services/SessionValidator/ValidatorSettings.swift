import ServiceKit
import SyncModel
import TenantCalls

/// Settings of the session validator.
enum ValidatorSettings {
    /// The time limit of one call to a tenant.
    static let timeout = SettingKey<Duration>.milliseconds("MSS_VALIDATOR_TIMEOUT_MS", in: 100...7_000, default: 3_000)
    /// The addresses at which tenants may be called.
    static let callouts = CalloutSettings(prefix: "MSS_VALIDATOR")
    /// The largest number of calls in flight for each tenant.
    static let tenantConcurrency = SettingKey<Int>.integer(
        "MSS_VALIDATOR_TENANT_CONCURRENCY", in: 1...1_000, default: 32)

    static let keys =
        [timeout.erased] + callouts.keys
        + [tenantConcurrency.erased, KeyRingSetting.sealing(for: .callout).erased]

    /// The faults of the file of certificate authorities, shown to the operator when the process starts.
    static func problems(_ settings: Settings) -> [String] { callouts.problems(settings) }
}

extension SessionEndpoint {
    /// The endpoint from the settings.
    init(_ settings: Settings) throws {
        try self.init(
            limit: settings[ValidatorSettings.timeout], policy: ValidatorSettings.callouts.policy(settings),
            authorityFile: ValidatorSettings.callouts.authorityFile(settings))
    }
}
