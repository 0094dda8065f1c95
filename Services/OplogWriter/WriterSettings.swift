import PostgreSQL
import ServiceKit

/// Settings of the oplog writer.
enum WriterSettings {
    /// Connections that append; two to four a machine, more buy nothing (batches grow instead).
    static let appendLanes = SettingKey<Int>.integer("MSS_WRITER_APPEND_LANES", in: 1...16, default: 2)
    /// Connections that read backlogs.
    static let fetchLanes = SettingKey<Int>.integer("MSS_WRITER_FETCH_LANES", in: 1...16, default: 2)

    static let keys =
        PostgresSettings.keys + [
            appendLanes.erased, fetchLanes.erased, KeyRingSetting.masters.erased,
        ]
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
