import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Rights of the tiers in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct TierRightsTests {
    /// An object of the schema to which a role can have rights.
    private struct Object {
        let name: String
        /// A value of `pg_class.relkind`, or `f` for a function.
        let kind: String
        /// For a table, its columns; for a function, the types of its arguments.
        let parts: [String]
    }

    @Test(
        "SEC10: each role tries everything with every table, view, sequence and function; all that is not granted fails"
    )
    func matrix() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let objects = try await Self.objects(of: databases[0], in: ["public", "delivery"])
            #expect(Set(objects.map(\.name)) == Set(TierRightsMatrix.rights.keys), "each needs its row, and no other")
            try await Self.tryAll(objects, of: databases[0], "public, delivery")
        }
    }

    @Test("SEC10: the rights to the objects of a store schema are those of a database with one store")
    func storeMatrix() async throws {
        try await TestDatabase.with(connections: 1, stores: StoreLayout(count: 4)) { databases in
            let objects = try await Self.objects(of: databases[0], in: ["delivery_3"])
            #expect(Set(objects.map(\.name)).isSubset(of: TierRightsMatrix.rights.keys))
            #expect(objects.contains { $0.name == "append_oplogs" } && objects.contains { $0.name == "sync_point" })
            try await Self.tryAll(objects, of: databases[0], "delivery_3, public, delivery")
        }
    }

    /// Tries all rights of each role to the objects, which the search path finds.
    private static func tryAll(
        _ objects: [Object], of database: TestDatabase, _ searchPath: String
    ) async throws {
        for (column, role) in TierRightsMatrix.roles.enumerated() {
            try await database.withLogin(memberOf: tier(of: role)) { login in
                if role != tier(of: role) { try await login.execute("SET ROLE \(role)") }
                try await login.execute("SET search_path = \(searchPath)")
                for object in objects {
                    let row = TierRightsMatrix.rights[object.name] ?? []
                    let expected = row.indices.contains(column) ? row[column] : ""
                    let granted = try await rights(on: object, as: login)
                    #expect(granted == expected, "\(role) on \(object.name)")
                }
                try await triesMore(as: login)
            }
        }
    }

    @Test("SEC10: a login without a tier cannot connect to the database") func strangers() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let refused = await refusal {
                try await databases[0].withLogin(memberOf: nil) { try await $0.execute("SELECT 1") }
            }
            #expect(refused?.message.contains("permission denied for database") == true)
        }
    }

    @Test("SEC10: a process refuses a login with all rights, and accepts one of its tier")
    func owners() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let refused = await refusal { try await databases[0].connectAsProcess() }
            #expect(refused?.message.contains("may do everything") == true && refused?.mayRetry == false)
            try await databases[0].withLogin(memberOf: "mss_writer") { try await $0.connectAsProcess() }
            try await databases[0].withLogin(memberOf: "mss_statistics") { try await $0.connectAsProcess() }
        }
    }

    @Test("SEC10: a first migration and an upgrade need a role that owns the database and creates roles, no superuser")
    func migration() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let (server, name) = (databases[0], databases[0].database)
            let owner = "migrator_\(UUID().uuidString.prefix(8).lowercased())"
            try await server.execute(
                "CREATE ROLE \(owner) LOGIN CREATEROLE; ALTER DATABASE \(name) OWNER TO \(owner)")
            try await server.execute(Self.adminOfTierRoles(owner))
            let migrator = TestDatabase(name, user: owner)
            #expect(try await migrator.migrate() == Migration.all.map(\.name) + FunctionFile.all.map(\.name))
            #expect(try await migrator.migrate() == [])
            let newer = Migration("m9999_newer", script: "CREATE TABLE newer (id bigint)", isAdditive: true)
            #expect(try await migrator.migrate(to: Migration.all + [newer]) == ["m9999_newer"])
            await migrator.close()
            let tiers = TestDatabase(name, hasTiers: true)
            try await tiers.configure()
            await tiers.close()
            try await server.execute(
                "ALTER DATABASE \(name) OWNER TO mss; REASSIGN OWNED BY \(owner) TO mss; DROP OWNED BY \(owner)")
            try await server.execute("DROP ROLE \(owner)")
        }
    }

    // MARK: Trying

    /// From PostgreSQL 16 on, a role administers the roles that it made. Other tests may have made the tiers' roles of
    /// this server, so the owner gets what it would have as their maker.
    private static func adminOfTierRoles(_ owner: String) -> String {
        """
        DO $$ DECLARE role text; BEGIN
            IF current_setting('server_version_num')::int >= 160000 THEN
                FOR role IN SELECT rolname FROM pg_roles WHERE rolname LIKE 'mss\\_%' LOOP
                    EXECUTE format('GRANT %I TO \(owner) WITH ADMIN TRUE, INHERIT FALSE, SET FALSE', role);
                END LOOP;
            END IF;
        END $$
        """
    }

    /// The tier of the login: the writer also becomes the operator and the keeper.
    private static func tier(of role: String) -> String {
        ["mss_statistics", "mss_console", "mss_notifier", "mss_relay"].contains(role) ? role : "mss_writer"
    }

    private static func objects(of database: TestDatabase, in schemas: [String]) async throws -> [Object] {
        let namespaces = schemas.map { "'\($0)'::regnamespace" }.joined(separator: ", ")
        let sql = """
            SELECT c.relname, c.relkind::text, coalesce(string_agg(a.attname, ',' ORDER BY a.attname), '')
            FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace IN (\(namespaces))
                AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
            GROUP BY c.oid, c.relname, c.relkind
            UNION ALL
            SELECT p.proname, 'function', array_to_string(p.proargtypes::regtype[], ',') FROM pg_proc p
            WHERE p.pronamespace IN (\(namespaces))
            """
        // One partition represents all of them.
        var hasWeek = false
        return try await database.rows(sql, columns: 3).compactMap { row in
            let object = Object(
                name: row[0] ?? "", kind: row[1] ?? "",
                parts: (row[2] ?? "").split(separator: ",").map(String.init))
            guard object.name.wholeMatch(of: /oplog_\d{8}/) != nil else { return object }
            defer { hasWeek = true }
            return hasWeek ? nil : Object(name: "oplog_WEEK", kind: object.kind, parts: object.parts)
        }
    }

    private static func rights(on object: Object, as login: TestDatabase) async throws -> String {
        let name = object.name.hasSuffix("_WEEK") ? try await week(of: login) : object.name
        func may(_ statement: String) async throws -> Bool { try await self.may(statement, as: login) }
        switch object.kind {
        case "function":
            let arguments = object.parts.map { "NULL::\($0)" }.joined(separator: ", ")
            return try await may("SELECT \(name)(\(arguments))") ? "EXECUTE" : ""
        case "S":
            return try await may("SELECT nextval('\(name)')") ? "USAGE" : ""
        default:
            var rights: [String] = []
            if try await may("SELECT FROM \(name) LIMIT 0") { rights.append("SELECT") }
            if try await may("INSERT INTO \(name) DEFAULT VALUES") { rights.append("INSERT") }
            var columns: [String] = []
            for column in object.parts where try await may("UPDATE \(name) SET \(column) = DEFAULT WHERE false") {
                columns.append(column)
            }
            if columns == object.parts {
                rights.append("UPDATE")
            } else if !columns.isEmpty {
                rights.append("UPDATE(\(columns.joined(separator: ",")))")
            }
            if try await may("DELETE FROM \(name) WHERE false") { rights.append("DELETE") }
            if object.kind != "v", try await may("TRUNCATE \(name)") { rights.append("TRUNCATE") }
            return rights.joined(separator: " ")
        }
    }

    private static func week(of login: TestDatabase) async throws -> String {
        let sql = "SELECT relname::text FROM pg_class WHERE relname ~ '^oplog_\\d{8}$' ORDER BY 1 LIMIT 1"
        return try await login.rows(sql, columns: 1)[0][0] ?? ""
    }

    /// Whether the statement passes the check of rights; other errors are ignored. The transaction is rolled back.
    private static func may(_ statement: String, as login: TestDatabase) async throws -> Bool {
        let error = await refusal { try await login.execute("BEGIN; \(statement)") }
        try await login.execute("ROLLBACK")
        guard let error else { return true }
        guard case .server(let sqlState) = error.code else { throw error }
        // 42501: insufficient privilege, also raised by the second check; 55000: the view does not accept changes.
        return sqlState != "55000" && (sqlState != "42501" || error.message.contains("row-level security"))
    }

    /// Actions that no tier may do: create objects, change them, become the owner.
    private static func triesMore(as login: TestDatabase) async throws {
        for statement in [
            "CREATE TABLE mine (id bigint)", "CREATE TABLE delivery.mine (id bigint)",
            "CREATE TEMP TABLE mine (id bigint)", "CREATE SCHEMA mine",
            "CREATE FUNCTION mine() RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint'",
            "ALTER TABLE channel ADD COLUMN mine bigint", "ALTER TABLE channel DISABLE ROW LEVEL SECURITY",
            "DROP TABLE channel", "ALTER FUNCTION enter_incarnation SECURITY INVOKER", "SET ROLE mss_owner",
            "CREATE ROLE mine", "GRANT mss_owner TO CURRENT_USER", "SELECT pg_read_file('PG_VERSION')",
            "COPY (SELECT 1) TO PROGRAM 'cat'",
        ] {
            let isAllowed = try await may(statement, as: login)
            #expect(!isAllowed, "\(statement)")
        }
    }
}
