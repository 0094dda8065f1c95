import PostgreSQL
import SyncStore
import TestSupport
import Testing

/// Logins belong to the whole server, so only one test creates them.
@Suite("SEC10: logins of the tiers", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct TierLoginTests {
    @Test("each tier's login is created once, with its tier's rights and its password; a foreign role is refused")
    func logins() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func dropLogins() async throws {
                try await database.execute("DROP ROLE IF EXISTS writer, statistics, console, notifier, relay")
            }
            do { try await check(database) } catch {
                try await dropLogins()
                throw error
            }
            try await dropLogins()
        }
    }

    private func check(_ database: TestDatabase) async throws {
        try await database.execute("CREATE ROLE console")
        let refused = await refusal { try await database.makeLogins(passwords: [:]) }
        #expect(refused?.message.contains("a role console that is not this service's") == true)
        try await database.execute("DROP ROLE console")

        let passwords = [
            "writer": "it's one", "statistics": "two", "console": "three", "notifier": "four", "relay": "five",
        ]
        try await database.makeLogins(passwords: passwords)
        let first = try await verifiers(database)
        #expect(first.map { $0[0] } == ["console", "notifier", "relay", "statistics", "writer"])
        #expect(first.allSatisfy { $0[1]?.hasPrefix("SCRAM-SHA-256$4096:") == true && $0[2] == "true" })
        #expect(first.allSatisfy { row in passwords.values.allSatisfy { row[1]?.contains($0) == false } })

        try await database.makeLogins(passwords: ["writer": "another"])
        let second = try await verifiers(database)
        #expect(second.prefix(4) == first.prefix(4) && second[4] != first[4])
    }

    private func verifiers(_ database: TestDatabase) async throws -> [[String?]] {
        try await database.rows(
            """
            SELECT rolname, rolpassword, pg_has_role(oid, to_regrole('mss_' || rolname), 'MEMBER')::text
            FROM pg_authid
            WHERE rolname IN ('writer', 'statistics', 'console', 'notifier', 'relay') AND rolcanlogin ORDER BY rolname
            """, columns: 3)
    }
}
