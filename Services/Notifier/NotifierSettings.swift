import ServiceKit

/// Settings of the notifier.
enum NotifierSettings {
    /// The file with the apps to wake and the credentials for their push providers.
    static let appsFile = SettingKey<String>.text(
        "MSS_NOTIFIER_APPS_FILE", "JSON of the apps and their push providers", example: "/etc/mss/wake-up.json",
        default: nil)
    /// The certificate authorities of the push providers.
    static let authorityFile = SettingKey<String>.text(
        "MSS_NOTIFIER_AUTHORITY_FILE", "PEM of the authorities of the providers' certificates, instead of the system's",
        example: "/etc/mss/providers.pem", default: "")
    /// The HTTP proxy through which the private cloud reaches the push providers.
    static let proxy = SettingKey<String>.text(
        "MSS_NOTIFIER_PROXY", "host:port of an HTTP proxy (CONNECT) that leads to the providers",
        example: "proxy.example.com:3128", default: "")
    /// The pause before a woken device that did not connect is woken again. Devices receive two or three silent pushes
    /// an hour.
    static let interval = SettingKey<Duration>.seconds(
        "MSS_NOTIFIER_INTERVAL_SECONDS", in: 1...86_400, default: 1_200)

    static let keys =
        PostgresSettings.keys + [appsFile.erased, authorityFile.erased, proxy.erased, interval.erased]

    /// The faults of the files, shown to the operator when the process starts.
    static func problems(_ settings: Settings) -> [String] {
        do {
            try PushProviders(settings).discard()
            return []
        } catch {
            return ["\(error)"]
        }
    }
}
