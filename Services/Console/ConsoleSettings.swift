import Foundation
import PostgreSQL
import ServerTLS
import ServiceKit

/// The settings of the console beside the common ones and the database's.
enum ConsoleSettings {
    /// Where people reach it.
    static let host = SettingKey<String>.text(
        "MSS_CONSOLE_HOST", "an address of this host to listen on", example: "0.0.0.0", default: "127.0.0.1")
    static let port = SettingKey<Int>.port("MSS_CONSOLE_PORT", default: 7_090)
    /// With certificate and key the port is HTTPS, without both plain HTTP, which browsers take on loopback alone.
    static let certificateFile = SettingKey<String>.text(
        "MSS_CONSOLE_CERTIFICATE_FILE", "a PEM file with the certificate chain, for HTTPS", example: "server.pem",
        default: "")
    static let privateKeyFile = SettingKey<String>.text(
        "MSS_CONSOLE_PRIVATE_KEY_FILE", "a PEM file with the private key, for HTTPS", example: "server.key",
        default: "")
    /// Whether something in front, such as a balancer, ends the people's TLS: then plain HTTP may leave this machine.
    static let tlsInFront = SettingKey<String>.choice("MSS_CONSOLE_TLS_IN_FRONT", of: ["on", "off"], default: "off")
    /// Connections of one source address at one time, of the 1,024 that there are; more are answered 503. Behind a
    /// balancer all people have its address: set it to as many as there may be at all.
    static let sourceConnections = SettingKey<Int>.integer(
        "MSS_CONSOLE_SOURCE_CONNECTIONS_MAX", in: 1...1_024, default: ConnectionLimits.console.sourceConnections)
    /// As browsers see the console where something in front gives it another Host: what the origin of a change is
    /// compared with.
    static let origin = SettingKey<String>.text(
        "MSS_CONSOLE_ORIGIN", "scheme and host as browsers see them", example: "https://console.example.com",
        default: "")
    /// Proxies in front that add to X-Forwarded-For where they got a request from.
    static let trustedProxies = SettingKey<[String]>.list(
        "MSS_CONSOLE_TRUSTED_PROXIES", "their addresses", example: "10.0.0.2,10.0.0.3")
    /// Whether operators and administrators must have a second factor.
    static let requireSecondFactor = SettingKey<String>.choice(
        "MSS_CONSOLE_REQUIRE_SECOND_FACTOR", of: ["on", "off"], default: "off")
    /// Second factors rest under it; without it there are none.
    static let sealingKey = SettingKey<String>.secret(
        "MSS_CONSOLE_SEALING_KEY", "Base64 of 32 random bytes, the same for every console", default: "")
    /// Where devices reach a gateway from outside, for `meta.config`.
    static let deviceHost = SettingKey<String>.text(
        "MSS_CONSOLE_DEVICE_HOST", "the gateways' name or address, as devices reach them", example: "sync.example.com",
        default: "127.0.0.1")
    static let devicePort = SettingKey<Int>.port("MSS_CONSOLE_DEVICE_PORT", default: 7_443)
    /// Where a gateway serves its own page, which is a device in the browser.
    static let devicePage = SettingKey<String>.text(
        "MSS_CONSOLE_DEVICE_PAGE", "the URL of a gateway's demo page", example: "https://127.0.0.1:7443/", default: "")

    /// For the process's list.
    static let keys =
        PostgresSettings.keys + [
            host.erased, port.erased, certificateFile.erased, privateKeyFile.erased, tlsInFront.erased,
            sourceConnections.erased, origin.erased,
            trustedProxies.erased, requireSecondFactor.erased, sealingKey.erased, deviceHost.erased, devicePort.erased,
            devicePage.erased,
        ]

    /// What one process takes at a time.
    static func limits(_ settings: Settings) -> ConnectionLimits {
        var limits = ConnectionLimits.console
        limits.sourceConnections = settings[sourceConnections]
        return limits
    }

    /// Who may come in, and from where.
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

    /// Where devices reach a gateway.
    static func devices(_ settings: Settings) -> DeviceAddress {
        DeviceAddress(
            host: settings[deviceHost], port: settings[devicePort],
            page: settings[devicePage].isEmpty ? nil : settings[devicePage])
    }

    /// Scheme and host, with or without a port, and nothing behind.
    private static func isOrigin(_ text: String) -> Bool {
        let parts = text.lowercased().components(separatedBy: "://")
        return parts.count == 2 && ["http", "https"].contains(parts[0]) && !parts[1].isEmpty
            && HostField.isValid(parts[1])
    }

    /// What is wrong beyond each setting's form.
    static func problems(_ settings: Settings) -> [String] {
        var problems: [String] = []
        if !settings[sealingKey].isEmpty, SecondFactorSeal(text: settings[sealingKey]) == nil {
            problems.append("MSS_CONSOLE_SEALING_KEY: it is not Base64 of 32 bytes; make one: openssl rand -base64 32")
        }
        if settings[requireSecondFactor] == "on", settings[sealingKey].isEmpty {
            problems.append(
                "MSS_CONSOLE_REQUIRE_SECOND_FACTOR: there are no second factors without MSS_CONSOLE_SEALING_KEY")
        }
        if !settings[origin].isEmpty, !isOrigin(settings[origin]) {
            problems.append(
                "MSS_CONSOLE_ORIGIN: it is a scheme and a host alone, such as https://console.example.com, without a "
                    + "slash at the end")
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
