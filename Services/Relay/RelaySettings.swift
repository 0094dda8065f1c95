import ServiceKit
import SyncModel
import TenantCalls

/// Settings of the relay.
enum RelaySettings {
    /// The time limit of one call to a tenant; shorter than the time limit of a shutdown.
    static let timeout = SettingKey<Duration>.milliseconds("MSS_RELAY_TIMEOUT_MS", in: 100...60_000, default: 5_000)
    /// The largest number of calls in flight for each tenant.
    static let tenantConcurrency = SettingKey<Int>.integer("MSS_RELAY_TENANT_CONCURRENCY", in: 1...1_000, default: 64)
    /// The pause after the first failed attempt. Each later pause is twice as long, at most 300 s.
    static let firstPause = SettingKey<Duration>.milliseconds(
        "MSS_RELAY_FIRST_PAUSE_MS", in: 10...60_000, default: 1_000)
    /// The number of attempts after which an operation is dead.
    static let attempts = SettingKey<Int>.integer("MSS_RELAY_ATTEMPTS", in: 1...100_000, default: 1_000)
    /// The age after which an operation is dead, if it had at least ten attempts.
    static let age = SettingKey<Duration>.seconds("MSS_RELAY_AGE_SECONDS", in: 1...2_592_000, default: 259_200)
    /// The addresses at which tenants may be called.
    static let callouts = CalloutSettings(prefix: "MSS_RELAY")

    static let keys =
        PostgresSettings.keys + [
            timeout.erased, tenantConcurrency.erased, firstPause.erased, attempts.erased, age.erased,
        ] + callouts.keys + [KeyRingSetting.sealing(for: .callout).erased]

    /// The faults of the file of certificate authorities, shown to the operator when the process starts.
    static func problems(_ settings: Settings) -> [String] { callouts.problems(settings) }
}
