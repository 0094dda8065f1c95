import PostgreSQL
import ServiceKit

/// Settings of the statistics aggregator.
enum AggregatorSettings {
    static let keys = PostgresSettings.keys
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
