package import PostgreSQL

/// Brings a database to this build's schema and checks that it is there.
package enum MigrationRunner {
    /// One line of the database's own history.
    struct Applied: Hashable, Sendable {
        let name: String
        let checksum: Int64
        let isAdditive: Bool
    }

    private static let limit = Duration.seconds(60)
    /// How often a migration waits for a table, a second each time: longer, and every push would queue behind it.
    private static let attempts = 30
    /// PostgreSQL's `lock_not_available`.
    private static let lockNotAvailable = "55P03"

    /// Applies what is missing, each migration in its own transaction and as `mss_owner`; of two runners at once one
    /// waits.
    ///
    /// - Parameters:
    ///   - connection: of a role that owns the database and may create roles, or finds those of the tiers made.
    ///   - all: every migration that there is to be, in order.
    /// - Returns: the names of the migrations applied now.
    /// - Throws: `.misuse` when the history differs from `all`, `.server` when a migration fails, also because somebody
    ///   keeps a table for half a minute and more: nothing of that migration is applied then.
    package static func migrate(
        _ connection: PostgresConnection, to all: [Migration] = Migration.all
    ) throws(PostgresError) -> [String] {
        try connection.execute(
            script: """
                SET lock_timeout = '\(limit.components.seconds)s'; SET statement_timeout = '\(limit.components.seconds)s';
                SELECT pg_advisory_lock(hashtext('mss migrations'));
                RESET lock_timeout; RESET statement_timeout;
                \(TierRoles.preparation)
                SET ROLE mss_owner;
                CREATE TABLE IF NOT EXISTS schema_migration (
                    name text PRIMARY KEY, checksum bigint NOT NULL, is_additive boolean NOT NULL,
                    applied_at timestamptz NOT NULL DEFAULT now());
                GRANT SELECT ON schema_migration TO mss_writer, mss_statistics, mss_console, mss_notifier,
                    mss_relay;
                """, within: limit)
        let missing = try missing(after: try history(connection), of: all)
        for migration in missing { try apply(migration, to: connection) }
        try connection.execute(
            script: "RESET ROLE; SELECT pg_advisory_unlock(hashtext('mss migrations'))", within: limit)
        return missing.map(\.name)
    }

    /// Waits for tables in short turns, so that who works with them is held up for a second at most and goes first then.
    private static func apply(_ migration: Migration, to connection: PostgresConnection) throws(PostgresError) {
        for attempt in 1... {
            do throws(PostgresError) {
                return try connection.execute(
                    script: """
                        BEGIN;
                        SET LOCAL lock_timeout = '1s';
                        \(migration.script);
                        INSERT INTO schema_migration (name, checksum, is_additive)
                        VALUES ('\(migration.name)', \(migration.checksum), \(migration.isAdditive));
                        COMMIT;
                        """, within: limit)
            } catch {
                guard error.code == .server(sqlState: lockNotAvailable), attempt < attempts else { throw error }
                try connection.execute(script: "ROLLBACK; SELECT pg_sleep(1)", within: limit)
            }
        }
    }

    /// What `migrate` would apply.
    package static func pending(_ connection: PostgresConnection) throws(PostgresError) -> [Migration] {
        try missing(after: try history(connection))
    }

    /// Fails unless the database has this build's schema, or that and what a newer build has added to it.
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
        let lines = PostgresStatement("SELECT name, checksum, is_additive FROM schema_migration ORDER BY name")
        return try connection.run(lines, within: limit).map {
            Applied(name: $0.text(0), checksum: $0.int64(1), isAdditive: $0.bool(2))
        }
    }

    /// Compares a history with this build's migrations; pure. What newer builds have added is no difference.
    static func missing(
        after history: [Applied], of all: [Migration] = Migration.all
    ) throws(PostgresError) -> [Migration] {
        for (index, applied) in history.enumerated() {
            guard index < all.count else {
                guard !applied.isAdditive else { continue }
                throw PostgresError(
                    code: .misuse,
                    message: "the database has \(applied.name), which is newer than this build and ends its work: "
                        + "use a newer one",
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
