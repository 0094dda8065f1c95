package import ConnectionThread

/// Settings of the processes that open the database.
package enum PostgresSettings {
    static let host = SettingKey<String>.servers("MSS_POSTGRES_HOST", of: "the database", portName: "MSS_POSTGRES_PORT")
    static let port = SettingKey<Int>.port("MSS_POSTGRES_PORT", default: 5_432)
    package static let database = SettingKey<String>.text(
        "MSS_POSTGRES_DATABASE", "the database's name", example: "mss", default: "mss")
    package static let user = SettingKey<String>.text(
        "MSS_POSTGRES_USER", "the database's user of this tier", example: "writer", default: nil)
    package static let password = SettingKey<String>.secret(
        "MSS_POSTGRES_PASSWORD", "the database's password", default: "")
    static let tls = SettingKey<String>.choice("MSS_POSTGRES_TLS", of: ["on", "off"], default: "off")
    static let authorityFile = SettingKey<String>.text(
        "MSS_POSTGRES_AUTHORITY_FILE", "a PEM file with the authorities of the database's certificate",
        example: "ca.pem", default: "")
    static let certificateFile = SettingKey<String>.text(
        "MSS_POSTGRES_CERTIFICATE_FILE", "a PEM file with this process's certificate, for a database that asks for one",
        example: "client.pem", default: "")
    static let privateKeyFile = SettingKey<String>.text(
        "MSS_POSTGRES_PRIVATE_KEY_FILE", "a PEM file with that certificate's key", example: "client.key", default: "")

    /// All database settings, for a process's list of settings.
    package static let keys = [
        host.erased, port.erased, database.erased, user.erased, password.erased, tls.erased, authorityFile.erased,
        certificateFile.erased, privateKeyFile.erased,
    ]

    /// The servers of the database.
    package static func addresses(_ settings: Settings) -> [ServerAddress] {
        ServerAddress.list(settings[host], defaultPort: settings[port]) ?? []
    }

    /// Builds the driver's TLS settings; nil without TLS. This module does not import the driver.
    ///
    /// - Parameter make: receives the files of the authority, the certificate and the key. The last two may be empty.
    package static func security<Security>(
        _ settings: Settings, _ make: (String, String, String) -> Security
    ) -> Security? {
        guard settings[tls] == "on" else { return nil }
        return make(settings[authorityFile], settings[certificateFile], settings[privateKeyFile])
    }
}
