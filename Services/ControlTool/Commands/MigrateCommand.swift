import ArgumentParser
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SyncStore
import ToolSupport

/// `mssctl migrate`: applies the migrations and functions of this build.
struct MigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Migrates the database to the schema of this build.",
        discussion: """
            Reads MSS_POSTGRES_HOST, _PORT, _DATABASE, _USER, _PASSWORD, _TLS and its files, MSS_ENVIRONMENT. The \
            first migration makes the number of store schemas that MSS_POSTGRES_STORES names.
            """)

    @Flag(help: "Only list what would be applied, and mark what processes of the old build tolerate.")
    var dryRun = false

    @Option(
        help: ArgumentHelp(
            "Also create the logins of the tiers (writer, statistics, …) or set their passwords, from the files "
                + "postgres_writer, postgres_statistics, … of this folder (mssctl secrets).",
            valueName: "folder"))
    var logins: String?

    func run() async throws {
        let passwords = try logins.map(Self.passwords)
        let stores = StoreLayout(try ToolSettings.read([StoreLayout.setting.erased]))
        let connection = try ToolSettings.database()
        if dryRun {
            try MigrationRunner.refuse(otherThan: stores, connection)
            let pending = try MigrationRunner.pending(connection)
            // Functions change only in ways that processes of the old build tolerate.
            let ending = Set(pending.migrations.filter { !$0.isAdditive }.map(\.name))
            let lines = pending.names.map { ending.contains($0) ? $0 : "\($0) (only adds)" }
            print(lines.isEmpty ? "nothing to apply" : lines.joined(separator: "\n"))
        } else {
            let applied = try MigrationRunner.migrate(connection, stores: stores)
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
