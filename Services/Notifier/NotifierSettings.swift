import PostgreSQL
import ServiceKit

/// Settings of the notifier.
enum NotifierSettings {
    /// The apps that are woken, and what proves to their providers that they are ours.
    static let appsFile = SettingKey<String>.text(
        "MSS_NOTIFIER_APPS_FILE", "JSON of the apps and their push providers", example: "/etc/mss/wake-up.json",
        default: nil)
    /// Who signs the providers' certificates.
    static let authorityFile = SettingKey<String>.text(
        "MSS_NOTIFIER_AUTHORITY_FILE", "PEM of the authorities of the providers' certificates, instead of the system's",
        example: "/etc/mss/providers.pem", default: "")
    /// The way out of the private cloud.
    static let proxy = SettingKey<String>.text(
        "MSS_NOTIFIER_PROXY", "host:port of an HTTP proxy (CONNECT) that leads to the providers",
        example: "proxy.example.com:3128", default: "")
    /// How long a device that was woken and did not come is left alone; phones deliver two or three silent pushes an
    /// hour.
    static let interval = SettingKey<Duration>.seconds(
        "MSS_NOTIFIER_INTERVAL_SECONDS", in: 1...86_400, default: 1_200)

    static let keys =
        PostgresSettings.keys + [appsFile.erased, authorityFile.erased, proxy.erased, interval.erased]

    /// What is wrong with the files, for whoever starts the process.
    static func problems(_ settings: Settings) -> [String] {
        do {
            try PushProviders(settings).discard()
            return []
        } catch {
            return ["\(error)"]
        }
    }
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
