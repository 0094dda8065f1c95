import Foundation
import ServerTLS
import ServiceKit

/// The settings of the console, without the common ones and those of the database.
enum ConsoleSettings {
    /// The address on which the console listens.
    static let host = SettingKey<String>.text(
        "MSS_CONSOLE_HOST", "an address of this host to listen on", example: "0.0.0.0", default: "127.0.0.1")
    static let port = SettingKey<Int>.port("MSS_CONSOLE_PORT", default: 7_090)
    /// With certificate and key the port serves HTTPS; without both, plain HTTP. Browsers then accept the session
    /// cookie on loopback only.
    static let certificateFile = SettingKey<String>.text(
        "MSS_CONSOLE_CERTIFICATE_FILE", "a PEM file with the certificate chain, for HTTPS", example: "server.pem",
        default: "")
    static let privateKeyFile = SettingKey<String>.text(
        "MSS_CONSOLE_PRIVATE_KEY_FILE", "a PEM file with the private key, for HTTPS", example: "server.key",
        default: "")
    /// Whether a balancer in front terminates TLS; plain HTTP is then allowed on every address.
    static let tlsInFront = SettingKey<String>.choice("MSS_CONSOLE_TLS_IN_FRONT", of: ["on", "off"], default: "off")
    /// Connections of one source address at one time, of 1,024 in all; further ones are answered 503. Behind a balancer
    /// all operators have its address, so set it to 1,024.
    static let sourceConnections = SettingKey<Int>.integer(
        "MSS_CONSOLE_SOURCE_CONNECTIONS_MAX", in: 1...1_024, default: ConnectionLimits.console.sourceConnections)
    /// The console's origin for browsers, needed when a balancer in front sets another Host. The origin of every change
    /// is compared with it.
    static let origin = SettingKey<String>.text(
        "MSS_CONSOLE_ORIGIN", "scheme and host as browsers see them", example: "https://console.example.com",
        default: "")
    /// Proxies in front that append the address of their client to X-Forwarded-For.
    static let trustedProxies = SettingKey<[String]>.list(
        "MSS_CONSOLE_TRUSTED_PROXIES", "the addresses of the proxies in front", example: "10.0.0.2,10.0.0.3")
    /// Whether operators and administrators must have a second factor.
    static let requireSecondFactor = SettingKey<String>.choice(
        "MSS_CONSOLE_REQUIRE_SECOND_FACTOR", of: ["on", "off"], default: "off")
    /// The key that encrypts second factors in the database; without it accounts have no second factors.
    static let sealingKey = SettingKey<String>.secret(
        "MSS_CONSOLE_SEALING_KEY", "Base64 of 32 random bytes, the same for every console", default: "")
    /// The address of the gateways for devices, for `meta.config`.
    static let deviceHost = SettingKey<String>.text(
        "MSS_CONSOLE_DEVICE_HOST", "the gateways' name or address, as devices reach them", example: "sync.example.com",
        default: "127.0.0.1")
    static let devicePort = SettingKey<Int>.port("MSS_CONSOLE_DEVICE_PORT", default: 7_443)
    /// The demo page of a gateway, which is a device in the browser.
    static let devicePage = SettingKey<String>.text(
        "MSS_CONSOLE_DEVICE_PAGE", "the URL of a gateway's demo page", example: "https://127.0.0.1:7443/", default: "")

    /// All keys, for the process's list of settings.
    static let keys =
        PostgresSettings.keys + [
            host.erased, port.erased, certificateFile.erased, privateKeyFile.erased, tlsInFront.erased,
            sourceConnections.erased, origin.erased,
            trustedProxies.erased, requireSecondFactor.erased, sealingKey.erased, deviceHost.erased, devicePort.erased,
            devicePage.erased,
        ]

    /// The connection limits of one process.
    static func limits(_ settings: Settings) -> ConnectionLimits {
        var limits = ConnectionLimits.console
        limits.sourceConnections = settings[sourceConnections]
        return limits
    }

    /// The rules for sources, origins and second factors.
    static func entry(_ settings: Settings) -> EntryRules {
        EntryRules(
            origin: settings[origin].isEmpty ? nil : settings[origin].lowercased(),
            trustedProxies: Set(settings[trustedProxies]),
            requiresSecondFactor: settings[requireSecondFactor] == "on")
    }

    /// The files of the port's TLS; nil for plain HTTP.
    static func files(_ settings: Settings) -> CertificateFiles? {
        let files = CertificateFiles(
            certificateFile: settings[certificateFile], privateKeyFile: settings[privateKeyFile],
            clientAuthorityFile: "")
        return files.certificateFile.isEmpty && files.privateKeyFile.isEmpty ? nil : files
    }

    /// The address of the gateways for devices.
    static func devices(_ settings: Settings) -> DeviceAddress {
        DeviceAddress(
            host: settings[deviceHost], port: settings[devicePort],
            page: settings[devicePage].isEmpty ? nil : settings[devicePage])
    }

    /// Whether a text is a scheme and a host, with or without a port, and nothing else.
    private static func isOrigin(_ text: String) -> Bool {
        let parts = text.lowercased().components(separatedBy: "://")
        return parts.count == 2 && ["http", "https"].contains(parts[0]) && !parts[1].isEmpty
            && HostField.isValid(parts[1])
    }

    /// The faults of a combination of settings.
    static func problems(_ settings: Settings) -> [String] {
        var problems: [String] = []
        if !settings[sealingKey].isEmpty, SecondFactorSeal(text: settings[sealingKey]) == nil {
            problems.append(
                "MSS_CONSOLE_SEALING_KEY: it is not Base64 of 32 bytes; make a key: openssl rand -base64 32")
        }
        if settings[requireSecondFactor] == "on", settings[sealingKey].isEmpty {
            problems.append(
                "MSS_CONSOLE_REQUIRE_SECOND_FACTOR: second factors need a key; set MSS_CONSOLE_SEALING_KEY")
        }
        if !settings[origin].isEmpty, !isOrigin(settings[origin]) {
            problems.append(
                "MSS_CONSOLE_ORIGIN: it is not a scheme and a host only; set one such as https://console.example.com, "
                    + "without a slash at the end")
        }
        guard let files = files(settings) else {
            let mayBePlain = StartRules.isLoopback(settings[host]) || settings[tlsInFront] == "on"
            if !mayBePlain {
                problems.append(
                    "MSS_CONSOLE_HOST: plain HTTP on \(settings[host]) would show passwords to the network; set "
                        + "MSS_CONSOLE_CERTIFICATE_FILE and MSS_CONSOLE_PRIVATE_KEY_FILE, "
                        + "or MSS_CONSOLE_TLS_IN_FRONT=on where a balancer in front ends TLS")
            }
            return problems
        }
        do throws(ServerTLSError) {
            try files.check()
        } catch {
            problems.append("MSS_CONSOLE_CERTIFICATE_FILE, MSS_CONSOLE_PRIVATE_KEY_FILE: \(error)")
        }
        return problems
    }
}
