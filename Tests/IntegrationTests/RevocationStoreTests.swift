import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Revocations in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct RevocationStoreTests {
    @Test("H7: a revocation is found by its session, or by an empty digest, and is kept as long as a verdict can be")
    func revocations() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let app = InstanceID("app")
            // As the operation lanes do it.
            func revoke(_ user: String, _ digest: [UInt8]) async throws {
                try await database.executeAsWriter("SET ROLE mss_operator; SET mss.instance = 'app'")
                try await database.run(RevocationStore.revoke(app, UserID(user), digest: digest))
                try await database.executeAsWriter("SET ROLE mss_writer")
            }
            func age(_ digest: [UInt8], _ user: String = "u", _ instance: String = "app") async throws -> Int64? {
                try await database.run(RevocationStore.age(of: digest, InstanceID(instance), UserID(user)))
            }
            #expect(try await age([1]) == nil)
            try await revoke("u", [1])
            #expect(try await age([1]).map { $0 < 60_000 } == true)
            let others = [try await age([2]), try await age([1], "v"), try await age([1], "u", "b")]
            #expect(others == [nil, nil, nil])
            // Later than the server's clock by far: it stepped back since. The age is not below 0.
            try await database.execute("UPDATE session_revocation SET revoked_at = revoked_at + interval '1 hour'")
            #expect(try await age([1]) == 0)
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
            try await database.run(RevocationStore.removeOld)
            #expect(try await age([2]) == nil)
            #expect(try await age([1], "v") != nil)
        }
    }
}
