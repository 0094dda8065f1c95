import PostgreSQL
import TestSupport
import Testing

@testable import SyncStore

@Suite("Migrations", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct MigrationTests {
    @Test("several runners at once apply each migration once; a second run applies nothing") func racing() async throws
    {
        try await TestDatabase.with(connections: 4, isMigrated: false) { databases in
            let applied = try await withThrowingTaskGroup(of: [String].self) { group in
                for database in databases { group.addTask { try await database.migrate() } }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            #expect(applied == Migration.all.map(\.name))
            #expect(try await databases[0].migrate() == [])
            try await databases[0].verify()
        }
    }

    @Test("a database that lacks a migration, or has an edited or a newer one, is refused with words")
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

    @Test("a build works on with what a newer one has added, and finds nothing to apply") func newerAdds() async throws
    {
        try await TestDatabase.with(connections: 1) { databases in
            let future = Migration("m9999_future", script: "CREATE TABLE future (id bigint)", isAdditive: true)
            #expect(try await databases[0].migrate(to: Migration.all + [future]) == ["m9999_future"])
            try await databases[0].verify()
            #expect(try await databases[0].migrate() == [])
        }
    }

    @Test("a migration that waits for a table lets those who use it go first, and is applied once it is free")
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
                // It is ahead in the queue, and gives its place up; with the minute of a runner this would run out.
                try await user.execute("SET statement_timeout = '5s'; SELECT FROM oplog LIMIT 1")
            }
            try await holder.execute("COMMIT")
            #expect(try await applied == ["m9999_future"])
        }
    }
}
