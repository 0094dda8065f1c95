import ConnectionThread
import Foundation
import Glibc

/// Settings with which no process starts: contradictions, and in production insecure values such as the broker's
/// built-in user (SEC1, SEC16).
package enum StartRules {
    /// The connection settings of another server.
    private struct Access {
        /// The prefix of its settings.
        let prefix: String
        let name: String
        let hosts: [String]
        let usesTLS: Bool
        let authorityFile: String
        let certificateFile: String
        let privateKeyFile: String
    }

    /// Checks the settings.
    ///
    /// - Parameter own: the problems that the process itself found.
    /// - Throws: all problems; each says how to correct it.
    package static func check(_ settings: Settings, own: [String] = []) throws(Settings.Problems) {
        var problems: [String] = []
        let isGuarded = settings[ProcessSettings.environment] != ProcessSettings.development
        if settings.has(ProcessSettings.amqpHost) { problems += broker(settings, isGuarded: isGuarded) }
        if settings.has(PostgresSettings.host) { problems += database(settings, isGuarded: isGuarded) }
        problems += own
        guard problems.isEmpty else { throw Settings.Problems(lines: problems) }
    }

    /// Whether a host name or address is a loopback, so that nothing leaves this machine.
    package static func isLoopback(_ host: String) -> Bool {
        var (four, six) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, host, &four) == 1 { return UInt32(bigEndian: four.s_addr) >> 24 == 127 }
        if inet_pton(AF_INET6, host, &six) == 1 { return host == "::1" }
        return host == "localhost"
    }

    private static func broker(_ settings: Settings, isGuarded: Bool) -> [String] {
        let access = Access(
            prefix: "MSS_AMQP", name: "the broker", hosts: ProcessSettings.amqpAddresses(settings).map(\.host),
            usesTLS: settings[ProcessSettings.amqpTLS] == "on",
            authorityFile: settings[ProcessSettings.amqpAuthorityFile],
            certificateFile: settings[ProcessSettings.amqpCertificateFile],
            privateKeyFile: settings[ProcessSettings.amqpPrivateKeyFile])
        var problems = files(access)
        var address = in6_addr()
        let isAddress = access.hosts.contains { host in
            [AF_INET, AF_INET6].contains { inet_pton($0, host, &address) == 1 }
        }
        if access.usesTLS, isAddress {
            problems.append(
                "MSS_AMQP_HOST: with TLS, the broker's certificate must match a name; set a host name, not an address"
            )
        }
        guard isGuarded else { return problems }
        let (user, password) = (settings[ProcessSettings.amqpUser], settings[ProcessSettings.amqpPassword])
        if user == "guest" {
            problems.append(
                "MSS_AMQP_USER: guest is the broker's built-in user, which is publicly known; "
                    + "create a user for this process and delete guest")
        }
        if password.isEmpty || password == "guest" || password == user {
            problems.append(
                "MSS_AMQP_PASSWORD: it is \(password.isEmpty ? "empty" : "easy to guess"); "
                    + "set a random one, in a file that MSS_AMQP_PASSWORD_FILE names")
        }
        return problems + exposure(access)
    }

    private static func database(_ settings: Settings, isGuarded: Bool) -> [String] {
        let access = Access(
            prefix: "MSS_POSTGRES", name: "the database", hosts: PostgresSettings.addresses(settings).map(\.host),
            usesTLS: settings[PostgresSettings.tls] == "on",
            authorityFile: settings[PostgresSettings.authorityFile],
            certificateFile: settings[PostgresSettings.certificateFile],
            privateKeyFile: settings[PostgresSettings.privateKeyFile])
        var problems = files(access)
        guard isGuarded else { return problems }
        let showsCertificate = access.usesTLS && !access.certificateFile.isEmpty
        if settings[PostgresSettings.password].isEmpty, !showsCertificate {
            problems.append(
                "MSS_POSTGRES_PASSWORD: it is empty; set a random one, in a file that MSS_POSTGRES_PASSWORD_FILE names, "
                    + "or a client certificate in MSS_POSTGRES_CERTIFICATE_FILE")
        }
        return problems + exposure(access)
    }

    /// Checks the TLS files of a connection: required files, pairs, and readability.
    private static func files(_ access: Access) -> [String] {
        let authority = "\(access.prefix)_AUTHORITY_FILE"
        let (certificate, key) = ("\(access.prefix)_CERTIFICATE_FILE", "\(access.prefix)_PRIVATE_KEY_FILE")
        var problems: [String] = []
        if access.usesTLS, access.authorityFile.isEmpty {
            problems.append(
                "\(authority): \(access.prefix)_TLS=on requires it; "
                    + "name a PEM file with the authorities of \(access.name)'s certificate")
        }
        if access.certificateFile.isEmpty != access.privateKeyFile.isEmpty {
            problems.append("\(certificate), \(key): each requires the other; set both or none")
        }
        let named = [
            (authority, access.authorityFile), (certificate, access.certificateFile), (key, access.privateKeyFile),
        ]
        for (setting, file) in named where !file.isEmpty && !FileManager.default.isReadableFile(atPath: file) {
            problems.append("\(setting): the file \(file) cannot be read; check its path and its permissions")
        }
        return problems
    }

    private static func exposure(_ access: Access) -> [String] {
        // A path is a Unix socket on this machine.
        guard !access.usesTLS, let host = access.hosts.first(where: { !isLoopback($0) && !$0.hasPrefix("/") }) else {
            return []
        }
        return [
            "\(access.prefix)_TLS: the password and data would go to \(host) unencrypted; set it to on and "
                + "\(access.prefix)_AUTHORITY_FILE to the authority of \(access.name)'s certificate"
        ]
    }
}
