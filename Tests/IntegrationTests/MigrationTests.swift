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
            try await database.execute("INSERT INTO schema_migration (name, checksum) VALUES ('m9999_future', 1)")
            #expect(await reason().contains("newer"))
            try await database.execute("DELETE FROM schema_migration WHERE name >= 'm0002'")
            #expect(await reason().contains("mssctl migrate"))
            try await database.execute("UPDATE schema_migration SET checksum = 1")
            #expect(await reason().contains("differs"))
        }
    }
}
