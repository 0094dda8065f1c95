import PostgreSQL
import ServiceKit
import SyncModel
import TenantCalls

/// Settings of the relay.
enum RelaySettings {
    /// How long one call to a tenant may take in all; less than a shutdown may.
    static let timeout = SettingKey<Duration>.milliseconds("MSS_RELAY_TIMEOUT_MS", in: 100...60_000, default: 5_000)
    /// Calls under way per tenant.
    static let tenantConcurrency = SettingKey<Int>.integer("MSS_RELAY_TENANT_CONCURRENCY", in: 1...1_000, default: 64)
    /// The pause after the first attempt that failed; each later one is twice as long, at most 300 s.
    static let firstPause = SettingKey<Duration>.milliseconds(
        "MSS_RELAY_FIRST_PAUSE_MS", in: 10...60_000, default: 1_000)
    /// An operation is given up after so many attempts,
    static let attempts = SettingKey<Int>.integer("MSS_RELAY_ATTEMPTS", in: 1...100_000, default: 1_000)
    /// or when it has waited for so long, and has been tried ten times.
    static let age = SettingKey<Duration>.seconds("MSS_RELAY_AGE_SECONDS", in: 1...2_592_000, default: 259_200)
    /// Where tenants may be called.
    static let callouts = CalloutSettings(prefix: "MSS_RELAY")

    static let keys =
        PostgresSettings.keys + [
            timeout.erased, tenantConcurrency.erased, firstPause.erased, attempts.erased, age.erased,
        ] + callouts.keys + [KeyRingSetting.sealing(for: .callout).erased]

    /// What is wrong with the file of authorities, for whoever starts the process.
    static func problems(_ settings: Settings) -> [String] { callouts.problems(settings) }
}

extension PostgresConfiguration {
    /// The database as the settings name it.
    init(_ settings: Settings, applicationName: String) {
        let password = settings[PostgresSettings.password]
        self.init(
            host: settings[PostgresSettings.host], port: settings[PostgresSettings.port],
            database: settings[PostgresSettings.database], user: settings[PostgresSettings.user],
            password: password.isEmpty ? nil : password,
            security: PostgresSettings.security(settings, PostgresSecurity.init), applicationName: applicationName)
    }
}
