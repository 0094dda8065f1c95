import ServerTLS
import ServiceKit
import SyncModel

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
    /// If it is set, the TLS handshake accepts only devices with a certificate from this authority.
    static let clientAuthorityFile = SettingKey<String>.text(
        "MSS_GATEWAY_CLIENT_AUTHORITY_FILE",
        "a PEM file with the authorities that devices' certificates must come from",
        example: "devices-ca.pem", default: "")
    /// Whether the port serves the demo page and the client library to browsers. The WebSocket is available in any
    /// case.
    static let web = SettingKey<String>.choice("MSS_GATEWAY_WEB", of: ["on", "off"], default: "on")
    /// Whether the gateway accepts MQTT clients.
    static let mqtt = SettingKey<String>.choice("MSS_GATEWAY_MQTT", of: ["on", "off"], default: "off")
    /// Interval of pings until a device names another one. A device that is silent for 2.5 intervals is closed.
    static let heartbeat = SettingKey<Duration>.seconds("MSS_GATEWAY_HEARTBEAT_SECONDS", in: 1...3_600, default: 60)
    /// The longest interval that a device may name. A value below the heartbeat is raised to it.
    static let maxHeartbeat = SettingKey<Duration>.seconds(
        "MSS_GATEWAY_MAX_HEARTBEAT_SECONDS", in: 1...3_600, default: 300)
    /// The first wait of the resend ladder; each later one is twice as long (D14).
    static let firstResend = SettingKey<Duration>.seconds("MSS_GATEWAY_FIRST_RESEND_SECONDS", in: 1...600, default: 10)
    /// Devices per second that receive the notice of an immediate global push.
    static let globalPace = SettingKey<Int>.integer(
        "MSS_GATEWAY_GLOBAL_DEVICES_PER_SECOND", in: 20...1_000_000, default: 50_000)
    /// Surplus devices that a gateway closes per second while it has a fifth more than the mean of all gateways.
    static let rebalance = SettingKey<Int>.integer(
        "MSS_GATEWAY_REBALANCE_PER_SECOND", in: 0...10_000, default: 20)

    static let keys = [
        id.erased, host.erased, port.erased, certificateFile.erased, privateKeyFile.erased,
        clientAuthorityFile.erased, web.erased, mqtt.erased, heartbeat.erased, maxHeartbeat.erased, firstResend.erased,
        globalPace.erased, rebalance.erased, KeyRingSetting.sealing(for: .device).erased,
    ]

    /// The session limits from the settings.
    static func limits(_ settings: Settings) -> SessionLimits {
        SessionLimits(
            heartbeat: settings[heartbeat], maxHeartbeat: settings[maxHeartbeat], firstResend: settings[firstResend])
    }

    /// The files of the port's TLS.
    static func files(_ settings: Settings) -> CertificateFiles {
        CertificateFiles(
            certificateFile: settings[certificateFile], privateKeyFile: settings[privateKeyFile],
            clientAuthorityFile: settings[clientAuthorityFile])
    }

    /// Problems that the format check of each setting cannot find.
    static func problems(_ settings: Settings) -> [String] {
        do throws(ServerTLSError) {
            try files(settings).check()
            return []
        } catch {
            return ["MSS_GATEWAY_CERTIFICATE_FILE, _PRIVATE_KEY_FILE, _CLIENT_AUTHORITY_FILE: \(error)"]
        }
    }
}
