import ArgumentParser
import Logging
import PostgreSQL
import ServiceKit
import SyncStore

/// `mssctl migrate`: brings the database to this build's schema.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Brings the database to this build's schema.",
        discussion: "Reads MSS_POSTGRES_HOST, _PORT, _DATABASE, _USER, _PASSWORD, _TLS and its files, MSS_ENVIRONMENT.")

    @Flag(help: "Only name what would be applied, and whether processes of the old build go on with it.")
    var dryRun = false

    @Option(
        help: ArgumentHelp(
            "Also make the logins of the tiers (writer, statistics, …), or give them new passwords: those in the files "
                + "postgres_writer, postgres_statistics, … of this folder (mssctl secrets).",
            valueName: "folder"))
    var logins: String?

    func run() async throws {
        let passwords = try logins.map(Self.passwords)
        let settings = try ToolSettings.read(PostgresSettings.keys)
        let connection = PostgresConnection(
            configuration: PostgresConfiguration(tool: settings), logger: ToolSettings.logger())
        if dryRun {
            let pending = try MigrationRunner.pending(connection)
            let lines = pending.map { $0.isAdditive ? "\($0.name) (only adds)" : $0.name }
            print(lines.isEmpty ? "nothing to apply" : lines.joined(separator: "\n"))
        } else {
            let applied = try MigrationRunner.migrate(connection)
            print(
                applied.isEmpty ? "the schema is up to date" : applied.map { "applied \($0)" }.joined(separator: "\n"))
            if let passwords {
                try TierLogins.make(connection, passwords: passwords)
                print("the logins \(TierLogins.tiers.joined(separator: ", ")) have the passwords of their files")
            }
        }
        connection.close()
    }

    private static func passwords(in folder: String) throws -> [String: String] {
        try TierLogins.tiers.reduce(into: [:]) { passwords, tier in
            let file = "\(folder)/postgres_\(tier)"
            let password = try SecretFile.text(of: file)
            guard !password.isEmpty else { throw ValidationError("\(file) is empty: it must have a password") }
            passwords[tier] = password
        }
    }
}

extension PostgresConfiguration {
    /// The database as the tool's settings name it; a migration may take its time.
    init(tool settings: Settings) {
        let password = settings[PostgresSettings.password]
        self.init(
            host: settings[PostgresSettings.host], port: settings[PostgresSettings.port],
            database: settings[PostgresSettings.database], user: settings[PostgresSettings.user],
            password: password.isEmpty ? nil : password,
            security: PostgresSettings.security(settings, PostgresSecurity.init), applicationName: "mssctl",
            statementTimeout: .seconds(60), lockTimeout: .seconds(30))
    }
}
