import ArgumentParser
import PostgreSQL

/// `mssctl restored`: the database was put back from a backup.
struct RestoredCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restored",
        abstract: "Says that the database was put back from a backup: ids go on above all that were given before.",
        discussion: """
            The service sees that by itself after a failover, a recovery to a point in time and a dump in another \
            cluster; not where files or a machine's snapshot were put back. Say it before writers start; once more \
            does no harm. \(ConsoleCommand.postgresHint)
            """)

    func run() async throws {
        let connection = try ToolSettings.database()
        defer { connection.close() }
        let statement = PostgresStatement("SELECT begin_epoch()")
        guard let epoch = try connection.run(statement, within: .seconds(30)).first?.int64(0) else { return }
        print("epoch \(epoch) has begun")
    }
}
