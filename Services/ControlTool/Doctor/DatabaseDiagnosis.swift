import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore

/// The database as the migrating login sees it.
struct DatabaseDiagnosis: Sendable {
    let version: String
    let isStandby: Bool
    let fsync: String
    let synchronousCommit: String
    let pending: [String]
    /// Its clock before the tool's; negative: behind.
    let ahead: Duration

    private static let limit = Duration.seconds(5)

    /// What there is to say of the database that the settings name, if they do.
    static func ofSettings() throws -> [Finding] {
        guard try ToolSettings.nameDatabase() else {
            return [.skipped("database", "no MSS_POSTGRES_ setting names it")]
        }
        let connection = try ToolSettings.database()
        defer { connection.close() }
        do {
            return try DatabaseDiagnosis(connection).findings
        } catch {
            return [.problem("database", error.message, "look at its address, its login and its certificate")]
        }
    }

    /// Asks it.
    init(_ connection: PostgresConnection) throws(PostgresError) {
        let statement = PostgresStatement(
            """
            SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('fsync'),
                current_setting('synchronous_commit'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint
            """)
        // Twice: the first one connects.
        _ = try connection.run(statement, within: Self.limit)
        let before = WallTime.now
        guard let row = try connection.run(statement, within: Self.limit).first else {
            throw PostgresError(code: .misuse, message: "the server says nothing of itself", mayRetry: true)
        }
        version = row.text(0)
        isStandby = row.bool(1)
        fsync = row.text(2)
        synchronousCommit = row.text(3)
        ahead = .milliseconds(row.int64(4) - before.milliseconds)
        pending = try MigrationRunner.pending(connection).map(\.name)
    }

    init(
        version: String, isStandby: Bool, fsync: String, synchronousCommit: String, pending: [String], ahead: Duration
    ) {
        self.version = version
        self.isStandby = isStandby
        self.fsync = fsync
        self.synchronousCommit = synchronousCommit
        self.pending = pending
        self.ahead = ahead
    }

    var findings: [Finding] {
        var findings: [Finding] = []
        if isStandby {
            findings.append(.problem("database", "it is a standby", "name the primary in MSS_POSTGRES_HOST"))
        }
        if fsync != "on" || ["off", "local"].contains(synchronousCommit) {
            findings.append(
                .problem(
                    "database", "it may lose commits: fsync \(fsync), synchronous_commit \(synchronousCommit)",
                    "set both to on: writers refuse it as it is"))
        }
        if !pending.isEmpty {
            findings.append(
                .problem("database", "it lacks \(pending.joined(separator: ", "))", "run mssctl migrate"))
        }
        if ahead > ServiceDiagnosis.clockLimit || ahead < .zero - ServiceDiagnosis.clockLimit {
            findings.append(
                .warning(
                    "database", "its clock is \(ahead.wholeMilliseconds) ms ahead of this machine's",
                    "keep its machine's time (NTP): validity and retention go by it"))
        }
        return findings.isEmpty
            ? [.ok("database", "PostgreSQL \(version), a primary that keeps commits; schema up to date")] : findings
    }
}
