import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Admission in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct AdmissionStoreTests {
    private static func claim(
        _ claim: UInt8, nonce: UInt8 = 1, key: String = "k1", expiresAt: Int64 = 4_000_000_000_000
    ) -> AdmissionStore.Claim {
        AdmissionStore.Claim(
            keyID: key, nonce: [nonce], claim: [claim], expiresAt: WallTime(milliseconds: expiresAt))
    }

    @Test("SEC6: a nonce is accepted once per key; a repeat of the same claim is accepted again")
    func once() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let first = try await database.run(
                AdmissionStore.claim([
                    Self.claim(1), Self.claim(2), Self.claim(1), Self.claim(3, key: "k2"), Self.claim(4, nonce: 2),
                ]))
            #expect(first == [true, false, true, true, true])
            let again = try await database.run(
                AdmissionStore.claim([Self.claim(9, nonce: 3), Self.claim(2), Self.claim(1), Self.claim(4, key: "k2")]))
            #expect(again == [true, false, true, false])
        }
    }

    @Test("SEC6: an expired nonce is refused, for any clock of the process that claims it")
    func over() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            for _ in 0..<2 {
                let late = Self.claim(1, expiresAt: 1_700_000_000_000)
                let answers = try await database.run(AdmissionStore.claim([late, Self.claim(1, nonce: 2)]))
                #expect(answers == [false, true])
                try await database.run(AdmissionStore.removeEndedNonces(limit: 10))
            }
        }
    }

    @Test("SEC6: of racing claims for the same nonces, in any order, exactly one gets each")
    func race() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            for round in 0..<50 {
                let key = "k\(round)"
                let answers = try await withThrowingTaskGroup(of: [Bool].self) { group in
                    for (number, database) in databases.enumerated() {
                        let claims = (UInt8(0)..<20).shuffled().map {
                            Self.claim(UInt8(number), nonce: $0, key: key)
                        }
                        group.addTask { try await database.run(AdmissionStore.claim(claims)) }
                    }
                    return try await group.reduce(into: []) { $0 += $1 }
                }
                #expect(answers.count { $0 } == 20 && answers.count == 80)
            }
        }
    }

    @Test("expired nonces are removed, at most the limit at once, and no others")
    func ended() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let old = (UInt8(0)..<5).map { Self.claim(0, nonce: $0, expiresAt: 1_000) }
            _ = try await database.run(AdmissionStore.claim(old + [Self.claim(0, nonce: 9)]))
            func left() async throws -> [[String?]] {
                try await database.rows("SELECT count(*)::text FROM request_nonce", columns: 1)
            }
            try await database.run(AdmissionStore.removeEndedNonces(limit: 3))
            #expect(try await left() == [["3"]])
            for _ in 0..<2 { try await database.run(AdmissionStore.removeEndedNonces(limit: 3)) }
            #expect(try await left() == [["1"]])
        }
    }

    private static func quotaRequest(_ pushes: Int, of pushesPerDay: Int, key: String = "k1")
        -> AdmissionStore.QuotaRequest
    {
        AdmissionStore.QuotaRequest(
            instanceID: InstanceID("app"), keyID: key, pushes: pushes, pushesPerDay: pushesPerDay)
    }

    @Test("the quota of a day's pushes is granted to the last one and no further, also when the quota is reduced")
    func quota() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func reserve(_ pushes: Int, of day: Int, key: String = "k1") async throws -> [Int] {
                let quota = try #require(
                    try await database.run(AdmissionStore.reserve(Self.quotaRequest(pushes, of: day, key: key))))
                #expect(quota.resetsAt > WallTime(milliseconds: 1_700_000_000_000))
                #expect(quota.resetsAt.milliseconds % 86_400_000 == 0)
                #expect(quota.resetsIn > .zero && quota.resetsIn <= .seconds(86_400))
                return [quota.granted, quota.remaining]
            }
            #expect(try await reserve(4, of: 10) == [4, 6])
            #expect(try await reserve(4, of: 10) == [4, 2])
            #expect(try await reserve(4, of: 10) == [2, 0])
            #expect(try await reserve(4, of: 10) == [0, 0])
            #expect(try await reserve(4, of: 10, key: "") == [4, 6])
            #expect(try await reserve(4, of: 12) == [2, 0])
            #expect(try await reserve(4, of: 5) == [0, 0])
            #expect(try await reserve(1, of: 13) == [1, 0])
            #expect(try await reserve(5, of: 3, key: "k9") == [3, 0])
            try await database.execute("UPDATE push_quota SET day = day - 2 WHERE key_id = 'k1'")
            try await database.run(AdmissionStore.removeEndedQuotas)
            #expect(try await database.rows("SELECT key_id FROM push_quota ORDER BY 1", columns: 1) == [[""], ["k9"]])
        }
    }

    @Test("racing requests get exactly the quota of a day's pushes")
    func racingQuota() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            let granted = try await withThrowingTaskGroup(of: Int.self) { group in
                for database in databases {
                    group.addTask {
                        var own = 0
                        for _ in 0..<50 {
                            own +=
                                try await database.run(AdmissionStore.reserve(Self.quotaRequest(7, of: 1_000)))?.granted
                                ?? 0
                        }
                        return own
                    }
                }
                return try await group.reduce(0, +)
            }
            #expect(granted == 1_000)
        }
    }
}
