package import PostgreSQL
package import ServiceKit

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
