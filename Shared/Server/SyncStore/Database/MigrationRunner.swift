package import PostgreSQL

/// Applies this build's schema to a database, and verifies it.
package enum MigrationRunner {
    /// One row of the database's migration history.
    struct Applied: Hashable, Sendable {
        let name: String
        let checksum: Int64
        let isAdditive: Bool
    }

    private static let limit = Duration.seconds(60)
    /// The number of attempts of a script, each waiting 1 s for a table: during a longer wait every push would queue
    /// behind it.
    private static let attempts = 30
    /// PostgreSQL's `lock_not_available`.
    private static let lockNotAvailable = "55P03"
    private static let release = "SELECT pg_advisory_unlock(hashtext('mss migrations'))"

    /// Applies missing migrations, each in its own transaction. Then applies all function files in one transaction, if
    /// one of them has changed. All of it as `mss_owner`. When two runners run at once, one waits.
    ///
    /// - Parameters:
    ///   - connection: of a role that owns the database, and that may create roles or finds the roles of the tiers.
    ///   - stores: the number of stores, which the first migration fixes.
    ///   - all: every migration of the target schema, in order.
    ///   - functions: every function file of the target schema, in order.
    /// - Returns: the names of the migrations that this call applied, and of the function files that had changed.
    /// - Throws: `.misuse` when the history differs from `all`, or the database has another number of stores; `.server`
    ///   when a script fails, also when another session locks a table for half a minute or more. A failed script leaves
    ///   no change.
    package static func migrate(
        _ connection: PostgresConnection, stores: StoreLayout = .single, to all: [Migration] = Migration.all,
        functions: [FunctionFile] = FunctionFile.all
    ) throws(PostgresError) -> [String] {
        try connection.execute(
            script: """
                SET lock_timeout = '\(limit.components.seconds)s';
                SET statement_timeout = '\(limit.components.seconds)s';
                SELECT pg_advisory_lock(hashtext('mss migrations'));
                RESET lock_timeout; RESET statement_timeout;
                """, within: limit)
        do throws(PostgresError) {
            try refuse(otherThan: stores, connection)
        } catch {
            try connection.execute(script: release, within: limit)
            throw error
        }
        try connection.execute(
            script: """
                \(TierRoles.preparation(of: stores))
                SET ROLE mss_owner;
                CREATE TABLE IF NOT EXISTS schema_migration (
                    name text PRIMARY KEY, checksum bigint NOT NULL, is_additive boolean NOT NULL,
                    applied_at timestamptz NOT NULL DEFAULT now());
                CREATE TABLE IF NOT EXISTS schema_function (
                    name text PRIMARY KEY, checksum bigint NOT NULL, applied_at timestamptz NOT NULL DEFAULT now());
                CREATE TABLE IF NOT EXISTS schema_store (
                    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), stores integer NOT NULL);
                INSERT INTO schema_store (stores) VALUES (\(stores.count)) ON CONFLICT DO NOTHING;
                GRANT SELECT ON schema_migration, schema_function, schema_store
                    TO mss_writer, mss_statistics, mss_console, mss_notifier, mss_relay;
                """, within: limit)
        let pending = try pending(connection, of: all, functions: functions)
        for migration in pending.migrations {
            let scripts = migration.scope.scripts(of: migration.script, for: stores)
            try apply(
                """
                \(scripts.map { "\($0);" }.joined(separator: "\n"))
                INSERT INTO schema_migration (name, checksum, is_additive)
                VALUES ('\(migration.name)', \(migration.checksum), \(migration.isAdditive));
                """, to: connection)
        }
        if !pending.functions.isEmpty { try apply(script(of: functions, for: stores), to: connection) }
        try connection.execute(script: "RESET ROLE; \(release)", within: limit)
        return pending.names
    }

    /// Applies every file and records those that differ. All of them: an unchanged file can call a changed one.
    private static func script(of functions: [FunctionFile], for stores: StoreLayout) -> String {
        let scripts = functions.flatMap { $0.scope.scripts(of: $0.script, for: stores) }
        let rows = functions.map { "('\($0.name)', \($0.checksum))" }.joined(separator: ", ")
        return """
            \(scripts.map { "\($0);" }.joined(separator: "\n"))
            INSERT INTO schema_function AS f (name, checksum) VALUES \(rows)
            ON CONFLICT (name) DO UPDATE SET checksum = excluded.checksum, applied_at = now()
            WHERE f.checksum <> excluded.checksum;
            """
    }

    /// Runs a script in a transaction. It waits for tables in short attempts, so that other sessions are delayed for a
    /// second at most and go first then.
    private static func apply(_ script: String, to connection: PostgresConnection) throws(PostgresError) {
        for attempt in 1... {
            do throws(PostgresError) {
                return try connection.execute(
                    script: """
                        BEGIN;
                        SET LOCAL lock_timeout = '1s';
                        \(script)
                        COMMIT;
                        """, within: limit)
            } catch {
                guard error.code == .server(sqlState: lockNotAvailable), attempt < attempts else { throw error }
                try connection.execute(script: "ROLLBACK; SELECT pg_sleep(1)", within: limit)
            }
        }
    }

    /// The part of the schema that `migrate` would apply.
    package static func pending(
        _ connection: PostgresConnection, of all: [Migration] = Migration.all,
        functions: [FunctionFile] = FunctionFile.all
    ) throws(PostgresError) -> PendingSchema {
        let history = try history(connection)
        var pending = PendingSchema(migrations: try missing(after: history, of: all))
        // Otherwise a newer build has migrated the database. Its functions serve this build too, and this build's
        // older functions would not serve the newer build.
        if history.count <= all.count {
            pending.functions = changed(from: try checksums(connection), to: functions)
        }
        let findsBoth = PostgresStatement("SELECT current_schemas(false) @> '{public,delivery}'")
        pending.lacksSearchPath = try connection.run(findsBoth, within: limit).first(Bool.self) != true
        return pending
    }

    /// Throws `.misuse` unless the database has this build's schema, or this schema and additive migrations of a newer
    /// build.
    ///
    /// - Parameter stores: the number of stores that the process works with; nil: it works with any number.
    package static func verify(_ connection: PostgresConnection, stores: StoreLayout? = nil) throws(PostgresError) {
        let pending = try pending(connection)
        guard pending.isEmpty else {
            throw PostgresError(
                code: .misuse,
                message: "the database lacks \(pending.names.joined(separator: ", ")): run `mssctl migrate`",
                mayRetry: true)
        }
        if let stores { try refuse(otherThan: stores, connection) }
    }

    /// Throws `.misuse` when the database has another number of stores. A new database has none yet.
    package static func refuse(
        otherThan stores: StoreLayout, _ connection: PostgresConnection
    ) throws(PostgresError) {
        guard let count = try storeCount(connection), count != stores.count else { return }
        throw PostgresError(
            code: .misuse,
            message: "the database has \(count == 1 ? "1 store" : "\(count) stores"), but MSS_POSTGRES_STORES is "
                + "\(stores.count): set it to \(count), because the first migration has fixed the number",
            mayRetry: false)
    }

    /// The number of stores of the database; nil: it has no schema yet. A build that recorded no number made one store.
    private static func storeCount(_ connection: PostgresConnection) throws(PostgresError) -> Int? {
        guard try has("schema_store", connection) else { return try history(connection).isEmpty ? nil : 1 }
        return try connection.run(PostgresStatement("SELECT stores FROM schema_store"), within: limit).first(Int.self)
    }

    private static func history(_ connection: PostgresConnection) throws(PostgresError) -> [Applied] {
        guard try has("schema_migration", connection) else { return [] }
        let rows = PostgresStatement("SELECT name, checksum, is_additive FROM schema_migration ORDER BY name")
        return try connection.run(rows, within: limit).decode { columns throws(PostgresError) in
            try Applied(name: columns.next(), checksum: columns.next(), isAdditive: columns.next())
        }
    }

    /// The recorded checksums of function files, by name.
    private static func checksums(_ connection: PostgresConnection) throws(PostgresError) -> [String: Int64] {
        guard try has("schema_function", connection) else { return [:] }
        let rows = try connection.run(
            PostgresStatement("SELECT name, checksum FROM schema_function"), within: limit)
        var checksums: [String: Int64] = [:]
        try rows.forEachRow { columns throws(PostgresError) in
            let name = try columns.next(String.self)
            checksums[name] = try columns.next(Int64.self)
        }
        return checksums
    }

    private static func has(_ table: String, _ connection: PostgresConnection) throws(PostgresError) -> Bool {
        let exists = PostgresStatement("SELECT to_regclass($1) IS NOT NULL", [.text(table)])
        return try connection.run(exists, within: limit).first(Bool.self) == true
    }

    /// The files whose recorded checksum differs or is missing; pure.
    static func changed(from recorded: [String: Int64], to functions: [FunctionFile]) -> [FunctionFile] {
        functions.filter { recorded[$0.name] != $0.checksum }
    }

    /// Compares a history with this build's migrations; pure. Additive migrations of newer builds are not a difference.
    static func missing(
        after history: [Applied], of all: [Migration] = Migration.all
    ) throws(PostgresError) -> [Migration] {
        for (index, applied) in history.enumerated() {
            guard index < all.count else {
                guard !applied.isAdditive else { continue }
                throw PostgresError(
                    code: .misuse,
                    message: "the database has the migration \(applied.name), which is newer than this build and not "
                        + "additive: use a newer build",
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
