package import PostgreSQL

/// Brings a database to this build's schema and checks that it is there.
package enum MigrationRunner {
    /// One line of the database's own history.
    struct Applied: Hashable, Sendable {
        let name: String
        let checksum: Int64
    }

    private static let limit = Duration.seconds(60)

    /// Applies what is missing, each migration in its own transaction and as `mss_owner`; of two runners at once one
    /// waits.
    ///
    /// - Parameter connection: of a role that owns the database and may create roles, or finds those of the tiers made.
    /// - Returns: the names of the migrations applied now.
    /// - Throws: `.misuse` when the history differs from this build's, `.server` when a migration fails: nothing of
    ///   that migration is applied then.
    package static func migrate(_ connection: PostgresConnection) throws(PostgresError) -> [String] {
        try connection.execute(
            script: """
                SET lock_timeout = '\(limit.components.seconds)s'; SET statement_timeout = '\(limit.components.seconds)s';
                SELECT pg_advisory_lock(hashtext('mss migrations'));
                RESET lock_timeout; RESET statement_timeout;
                \(TierRoles.preparation)
                SET ROLE mss_owner;
                CREATE TABLE IF NOT EXISTS schema_migration (
                    name text PRIMARY KEY, checksum bigint NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
                GRANT SELECT ON schema_migration TO mss_writer, mss_statistics, mss_console;
                """, within: limit)
        let missing = try pending(connection)
        for migration in missing {
            try connection.execute(
                script: """
                    BEGIN;
                    \(migration.script)
                    INSERT INTO schema_migration (name, checksum) VALUES ('\(migration.name)', \(migration.checksum));
                    COMMIT;
                    """, within: limit)
        }
        try connection.execute(
            script: "RESET ROLE; SELECT pg_advisory_unlock(hashtext('mss migrations'))", within: limit)
        return missing.map(\.name)
    }

    /// What `migrate` would apply.
    package static func pending(_ connection: PostgresConnection) throws(PostgresError) -> [Migration] {
        try missing(after: try history(connection))
    }

    /// Fails unless the database has exactly this build's schema.
    package static func verify(_ connection: PostgresConnection) throws(PostgresError) {
        let missing = try pending(connection)
        guard missing.isEmpty else {
            throw PostgresError(
                code: .misuse,
                message: "the database lacks \(missing.map(\.name).joined(separator: ", ")): run `mssctl migrate`",
                mayRetry: true)
        }
    }

    private static func history(_ connection: PostgresConnection) throws(PostgresError) -> [Applied] {
        let exists = PostgresStatement("SELECT to_regclass('schema_migration') IS NOT NULL")
        guard try connection.run(exists, within: limit).first?.bool(0) == true else { return [] }
        let lines = PostgresStatement("SELECT name, checksum FROM schema_migration ORDER BY name")
        return try connection.run(lines, within: limit).map { Applied(name: $0.text(0), checksum: $0.int64(1)) }
    }

    /// Compares a history with this build's migrations; pure.
    static func missing(
        after history: [Applied], of all: [Migration] = Migration.all
    ) throws(PostgresError) -> [Migration] {
        for (index, applied) in history.enumerated() {
            guard index < all.count else {
                throw PostgresError(
                    code: .misuse,
                    message: "the database has \(applied.name), which this build does not know: it is newer",
                    mayRetry: false)
            }
            guard all[index].name == applied.name, all[index].checksum == applied.checksum else {
                throw PostgresError(
                    code: .misuse, message: "migration \(applied.name) in the database differs from this build's",
                    mayRetry: false)
            }
        }
        return Array(all.dropFirst(history.count))
    }
}
