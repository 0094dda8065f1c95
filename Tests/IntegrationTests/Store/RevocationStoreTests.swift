import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Revocations in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct RevocationStoreTests {
    @Test("H7: a revocation is found by its session, or by an empty digest, and is kept as long as a verdict can last")
    func revocations() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let app = InstanceID("app")
            // In the same way as the store workers for backend queries.
            func revoke(_ user: String, _ digest: [UInt8]) async throws {
                try await database.executeAsWriter("SET ROLE mss_operator; SET mss.instance = 'app'")
                try await database.run(RevocationStore.revoke(app, UserID(user), digest: digest))
                try await database.executeAsWriter("SET ROLE mss_writer")
            }
            func latest(
                _ digest: [UInt8], _ user: String = "u", _ instance: String = "app"
            ) async throws -> RevocationStore.Revocation? {
                try await database.run(RevocationStore.latest(of: digest, InstanceID(instance), UserID(user)))
            }
            func age(_ digest: [UInt8], _ user: String = "u", _ instance: String = "app") async throws -> Int64? {
                try await latest(digest, user, instance)?.agoMilliseconds
            }
            #expect(try await age([1]) == nil)
            try await revoke("u", [1])
            #expect(try await age([1]).map { $0 < 60_000 } == true)
            let others = [try await age([2]), try await age([1], "v"), try await age([1], "u", "b")]
            #expect(others == [nil, nil, nil])
            // Far in the future of the server's clock, which stepped back since. The age is not below 0.
            try await database.execute("UPDATE session_revocation SET revoked_at = revoked_at + interval '1 hour'")
            #expect(try await age([1]) == 0)
            let first = try #require(await latest([1])).number
            #expect(try await latest([1])?.number == first, "it is the same one, whatever the clock does")
            try await revoke("u", [1])
            let second = try #require(await latest([1])).number
            #expect(second > first, "a later one, although the clock is an hour behind the first")
            try await revoke("u", [])
            #expect(try #require(await latest([1])).number > second, "of the whole user, by a clock that stepped back")
            try await revoke("u", [1])
            try await database.execute("UPDATE session_revocation SET revoked_at = revoked_at - interval '1 hour'")
            #expect(try await age([1]).map { $0 < 60_000 } == true, "revoked again, it kept the later time")
            try await database.execute("UPDATE session_revocation SET revoked_at = revoked_at - interval '32 days'")
            try await revoke("u", [1])
            #expect(try await age([1]).map { $0 < 60_000 } == true, "revoked again, it took the later time")
            try await database.execute("UPDATE session_revocation SET revoked_at = revoked_at - interval '32 days'")
            try await revoke("u", [])
            #expect(try await age([2]).map { $0 < 60_000 } == true)
            #expect(try await age([1]).map { $0 < 60_000 } == true, "the latest counts")
            try await database.execute("UPDATE session_revocation SET revoked_at = revoked_at - interval '32 days'")
            try await revoke("v", [1])
            try await database.run(RevocationStore.removeOld(limit: 10))
            #expect(try await age([2]) == nil)
            #expect(try await age([1], "v") != nil)
        }
    }

    private static let old = """
        INSERT INTO session_revocation SELECT 'app', 'u', int4send(n), now() - interval '32 days' - n * interval '1 s'
            FROM generate_series(1, 1000) n
        """

    @Test("H7: old revocations are removed oldest first, at most the limit at once, and found without a scan")
    func removal() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.execute(Self.old)
            try await database.run(RevocationStore.removeOld(limit: 300))
            let left = "SELECT count(*)::text, bool_or(session_digest = int4send(1))::text FROM session_revocation"
            #expect(try await database.rows(left, columns: 2) == [["700", "true"]])
            try await database.executeAsWriter("SET enable_seqscan = off")
            let removal = RevocationStore.removeOld(limit: 10).statement
            let explain = PostgresStatement("EXPLAIN " + removal.sql, removal.parameters)
            let plan = try await database.run([explain])[0].get().decode(String.self)
            #expect(plan.contains { $0.contains("session_revocation_by_time") })
            #expect(plan.contains { $0.contains("Index Cond: (revoked_at <") })
        }
    }

    @Test("H7: a revocation that is made again while old ones are removed stays")
    func madeAgain() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (database, other) = (databases[0], databases[1])
            try await database.execute(Self.old)
            try await database.execute(
                "BEGIN; UPDATE session_revocation SET revoked_at = now() WHERE session_digest = int4send(7)")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await other.run(RevocationStore.removeOld(limit: 2_000)) }
                try await eventually("the removal waits", within: .seconds(10)) {
                    let waiting = "SELECT pid::text FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
                    return try await !database.rows(waiting, columns: 1).isEmpty
                }
                try await database.execute("COMMIT")
                try await group.waitForAll()
            }
            let left = "SELECT count(*)::text, min((session_digest = int4send(7))::int)::text FROM session_revocation"
            #expect(try await database.rows(left, columns: 2) == [["1", "1"]])
        }
    }
}
