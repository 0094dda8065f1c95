import ServiceKit

/// Settings of the gateway.
enum GatewaySettings {
    static let id = SettingKey<String>.text(
        "MSS_GATEWAY_ID", "a name that no other running gateway has", example: "gateway-1", default: nil)
    static let host = SettingKey<String>.text(
        "MSS_GATEWAY_HOST", "an address to listen on for devices", example: "0.0.0.0", default: "127.0.0.1")
    static let port = SettingKey<Int>.port("MSS_GATEWAY_PORT", default: 7_443)
    static let certificateFile = SettingKey<String>.text(
        "MSS_GATEWAY_CERTIFICATE_FILE", "a PEM file with the certificate chain", example: "server.pem", default: nil)
    static let privateKeyFile = SettingKey<String>.text(
        "MSS_GATEWAY_PRIVATE_KEY_FILE", "a PEM file with the private key", example: "server.key", default: nil)
    /// How often devices are to ping; a device silent for two and a half times this is closed.
    static let heartbeat = SettingKey<Duration>.seconds("MSS_GATEWAY_HEARTBEAT_SECONDS", in: 1...3_600, default: 60)

    static let keys = [
        id.erased, host.erased, port.erased, certificateFile.erased, privateKeyFile.erased, heartbeat.erased,
    ]
}
