import ArgumentParser
import PostgreSQL
import ToolSupport

/// `mssctl restored`: begins a new epoch after a restore from a backup.
struct RestoredCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restored",
        abstract: "Begins a new epoch after a restore from a backup, so that new ids are above all earlier ones.",
        discussion: """
            The service detects a failover, a point-in-time recovery, and a dump in another cluster by itself. It does \
            not detect restored files or a restored machine snapshot. Run this command before the writers start. A \
            repeated call does no harm. \(ConsoleCommand.postgresHint)
            """)

    func run() async throws {
        let connection = try ToolSettings.database()
        defer { connection.close() }
        let statement = PostgresStatement("SELECT begin_epoch()")
        guard let epoch = try connection.run(statement, within: .seconds(30)).first(Int64.self) else { return }
        print("epoch \(epoch) has begun")
    }
}
