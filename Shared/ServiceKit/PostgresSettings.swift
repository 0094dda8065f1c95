/// Settings of the processes that open the database.
package enum PostgresSettings {
    package static let host = SettingKey<String>.text(
        "MSS_POSTGRES_HOST", "the database's host", example: "127.0.0.1", default: "127.0.0.1")
    package static let port = SettingKey<Int>.port("MSS_POSTGRES_PORT", default: 5_432)
    package static let database = SettingKey<String>.text(
        "MSS_POSTGRES_DATABASE", "the database's name", example: "mss", default: "mss")
    package static let user = SettingKey<String>.text(
        "MSS_POSTGRES_USER", "the database's user", example: "mss", default: "mss")
    package static let password = SettingKey<String>.secret(
        "MSS_POSTGRES_PASSWORD", "the database's password", default: "")

    /// All of them, for a process's list.
    package static let keys = [host.erased, port.erased, database.erased, user.erased, password.erased]
}
