package import PostgreSQL
package import ServiceKit
package import SyncStore

extension PostgresConfiguration {
    /// The database that the settings name (`PostgresSettings.keys`).
    ///
    /// - Parameter applicationName: the name of the process, which the database shows beside its connections.
    package init(_ settings: Settings, applicationName: String) {
        let password = settings[PostgresSettings.password]
        self.init(
            addresses: PostgresSettings.addresses(settings), database: settings[PostgresSettings.database],
            user: settings[PostgresSettings.user], password: password.isEmpty ? nil : password,
            security: PostgresSettings.security(settings, PostgresSecurity.init), applicationName: applicationName)
    }
}

extension StoreLayout {
    /// The number of stores. The first migration fixes it; a process with another number refuses the database.
    package static let setting = SettingKey<Int>.integer("MSS_POSTGRES_STORES", in: counts, default: 1)

    /// The stores that the settings name.
    package init(_ settings: Settings) { self.init(count: settings[Self.setting]) }
}
