import ServiceKit

/// The console: pages and a JSON API for the people who run the service. Any number of them run side by side.
@main
struct Main {
    static func main() async {
        await ServiceMain.run("mss-console", settings: settings) { context in
            let control = ControlConnection(context, keysFor: nil)
            return [control.bus, control.directory]
        }
    }

    /// Where people reach it, what it seals with, and where devices are, for what it shows of them.
    private static let settings =
        PostgresSettings.keys + [
            SettingKey<String>.text(
                "MSS_CONSOLE_HOST", "an address of this host to listen on", example: "0.0.0.0", default: "127.0.0.1"
            ).erased,
            SettingKey<Int>.port("MSS_CONSOLE_PORT", default: 7_090).erased,
            file("MSS_CONSOLE_CERTIFICATE_FILE"), file("MSS_CONSOLE_PRIVATE_KEY_FILE"),
            SettingKey<String>.secret("MSS_CONSOLE_SEALING_KEY", "Base64 of 32 random bytes", default: "").erased,
            SettingKey<Int>.port("MSS_CONSOLE_DEVICE_PORT", default: 7_443).erased,
            SettingKey<String>.text(
                "MSS_CONSOLE_DEVICE_PAGE", "a gateway's page", example: "https://127.0.0.1:7443/", default: ""
            ).erased,
        ]

    private static func file(_ name: String) -> AnySettingKey {
        SettingKey<String>.text(name, "a PEM file, for HTTPS", example: "server.pem", default: "").erased
    }
}
