import PostgreSQL
import TestSupport
import Testing

@testable import SyncStore

@Suite("Migrations", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct MigrationTests {
    @Test("several runners at once apply each migration once; a second run applies nothing")
    func racing() async throws {
        try await TestDatabase.with(connections: 4, isMigrated: false) { databases in
            let applied = try await withThrowingTaskGroup(of: [String].self) { group in
                for database in databases { group.addTask { try await database.migrate() } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(applied == Migration.all.map(\.name) + FunctionFile.all.map(\.name))
            #expect(try await databases[0].migrate() == [])
            try await databases[0].verify()
        }
    }

    @Test("a database with a missing, edited or newer migration is refused with a message")
    func refuses() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func reason() async -> String { await refusal { try await database.verify() }?.message ?? "" }
            let future = Migration("m9999_future", script: "", isAdditive: false)
            _ = try await database.migrate(to: Migration.all + [future])
            #expect(await reason().contains("newer"))
            try await database.execute("DELETE FROM schema_migration WHERE name >= 'm0002'")
            #expect(await reason().contains("mssctl migrate"))
            try await database.execute("UPDATE schema_migration SET checksum = 1")
            #expect(await reason().contains("differs"))
        }
    }

    @Test("a build continues with the additions of a newer one, and finds nothing to apply")
    func newerAdds() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let future = Migration("m9999_future", script: "CREATE TABLE future (id bigint)", isAdditive: true)
            #expect(try await databases[0].migrate(to: Migration.all + [future]) == ["m9999_future"])
            try await databases[0].verify()
            #expect(try await databases[0].migrate() == [])
        }
    }

    @Test("a changed function file is missing, and a migrator applies it") func changedFunction() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let changed = FunctionFile.all.map { $0.name == "epochs.sql" ? Self.withProbe($0, answer: 1) : $0 }
            #expect(try await database.migrate(functions: changed) == ["epochs.sql"])
            #expect(try await database.rows("SELECT probe()::text", columns: 1) == [["1"]])
            #expect(try await database.migrate(functions: changed) == [])
            let reason = await refusal { try await database.verify() }
            #expect(reason?.message.contains("epochs.sql: run `mssctl migrate`") == true && reason?.mayRetry == true)
            #expect(try await database.migrate() == ["epochs.sql"])
            try await database.verify()
        }
    }

    @Test("a build works on with the functions of a newer build, and never puts its own in their place")
    func newerFunctions() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let newer = Migration.all + [Migration("m9999_future", script: "", isAdditive: true)]
            let changed = FunctionFile.all.map { $0.name == "epochs.sql" ? Self.withProbe($0, answer: 2) : $0 }
            #expect(try await database.migrate(to: newer, functions: changed) == ["m9999_future", "epochs.sql"])
            try await database.verify()
            #expect(try await database.migrate() == [])
            #expect(try await database.rows("SELECT probe()::text", columns: 1) == [["2"]])
        }
    }

    /// The file with a further function.
    private static func withProbe(_ file: FunctionFile, answer: Int) -> FunctionFile {
        let probe = "CREATE OR REPLACE FUNCTION probe() RETURNS integer LANGUAGE sql AS 'SELECT \(answer)'"
        return FunctionFile(file.name, script: "\(file.script)\n\(probe)")
    }

    @Test("a database that was restored without the setting of its search path is refused with words")
    func restored() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            try await databases[0].execute("ALTER DATABASE \(databases[0].database) RESET search_path")
            let reason = await refusal { try await databases[1].verify() }
            #expect(reason?.message.contains("search_path: run `mssctl migrate`") == true)
            #expect(try await databases[1].migrate() == [])
            try await databases[0].verify()
        }
    }

    @Test("a migration that waits for a table lets the users of the table go first, and is applied when it is free")
    func busyTable() async throws {
        try await TestDatabase.with(connections: 3) { databases in
            let (holder, migrator, user) = (databases[0], databases[1], databases[2])
            try await holder.execute(
                "SET idle_in_transaction_session_timeout = 0; BEGIN; LOCK TABLE oplog IN ACCESS SHARE MODE")
            let future = Migration(
                "m9999_future", script: "ALTER TABLE oplog ADD COLUMN future bigint", isAdditive: true)
            async let applied = migrator.migrate(to: Migration.all + [future])
            let waiting = "SELECT count(*)::text FROM pg_locks WHERE NOT granted AND relation = 'oplog'::regclass"
            for _ in 0..<2 {
                try await eventually("it waits", within: .seconds(10)) {
                    try await user.rows(waiting, columns: 1) == [["1"]]
                }
                // The migration is ahead in the queue and withdraws its request after a second; with a runner's limit
                // of a minute, this statement would time out.
                try await user.execute(
                    "SET statement_timeout = '5s'; SET lock_timeout = '5s'; SELECT FROM oplog LIMIT 1")
            }
            try await holder.execute("COMMIT")
            #expect(try await applied == ["m9999_future"])
        }
    }
}
