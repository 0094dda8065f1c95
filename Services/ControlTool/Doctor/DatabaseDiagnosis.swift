import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore
import ToolSupport

/// The state of the database, as the migration login sees it.
struct DatabaseDiagnosis: Sendable {
    let version: String
    let isStandby: Bool
    let fsync: String
    let synchronousCommit: String
    let pending: [String]
    /// Offset of its clock to the tool's clock. Negative if it is behind.
    let ahead: Duration

    private static let limit = Duration.seconds(5)

    /// The findings on the configured database.
    static func ofSettings() throws -> [Finding] {
        guard try ToolSettings.nameDatabase() else {
            return [.skipped("database", "MSS_POSTGRES_HOST and _PORT are not set")]
        }
        let connection = try ToolSettings.database()
        defer { connection.close() }
        do {
            return try DatabaseDiagnosis(connection).findings
        } catch {
            return [.problem("database", error.message, "check its address, login and certificate")]
        }
    }

    /// Queries the database.
    init(_ connection: PostgresConnection) throws(PostgresError) {
        let statement = PostgresStatement(
            """
            SELECT current_setting('server_version'), pg_is_in_recovery(), current_setting('fsync'),
                current_setting('synchronous_commit'), (extract(epoch FROM clock_timestamp()) * 1000)::bigint
            """)
        // The first query also connects, which would distort the clock offset.
        _ = try connection.run(statement, within: Self.limit)
        let before = WallTime.now
        let rows = try connection.run(statement, within: Self.limit)
        let pending = try MigrationRunner.pending(connection).names
        let diagnosis = try rows.first { columns throws(PostgresError) in
            try DatabaseDiagnosis(
                version: columns.next(), isStandby: columns.next(), fsync: columns.next(),
                synchronousCommit: columns.next(), pending: pending,
                ahead: .milliseconds(columns.next(Int64.self) - before.milliseconds))
        }
        guard let diagnosis else {
            throw PostgresError(code: .misuse, message: "the server returned no state", mayRetry: true)
        }
        self = diagnosis
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
            findings.append(.problem("database", "the server is a standby", "name the primary in MSS_POSTGRES_HOST"))
        }
        if fsync != "on" || ["off", "local"].contains(synchronousCommit) {
            findings.append(
                .problem(
                    "database", "the server can lose commits: fsync \(fsync), synchronous_commit \(synchronousCommit)",
                    "set both to on: writers refuse this server"))
        }
        if !pending.isEmpty {
            findings.append(
                .problem("database", "the schema lacks \(pending.joined(separator: ", "))", "run mssctl migrate"))
        }
        if ahead > ServiceDiagnosis.clockLimit || ahead < .zero - ServiceDiagnosis.clockLimit {
            findings.append(
                .warning(
                    "database", "the clock is \(ahead.wholeMilliseconds) ms ahead of this machine's",
                    "synchronize the clock of its machine (NTP): validity and retention depend on it"))
        }
        return findings.isEmpty
            ? [.ok("database", "PostgreSQL \(version), primary with durable commits; schema up to date")] : findings
    }
}
