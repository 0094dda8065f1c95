import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Statistics in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct StatisticsStoreTests {
    private typealias Fact = StatisticsFact

    private static let evening = StatisticsFact.evening
    private static let days = """
        SELECT biz_type, day::text, pushes::text, arrivals::text, dead_letters::text FROM statistics_day ORDER BY 1, 2
        """

    /// Runs the body with a database that has the channels, and `count` connections to it.
    static func with(connections count: Int = 1, _ body: @Sendable ([TestDatabase]) async throws -> Void) async throws {
        try await TestDatabase.with(connections: count) { databases in
            try await StatisticsFact.prepare(databases[0])
            try await body(databases)
        }
    }

    @Test(
        "S2: pushes are distinct oplogs, arrivals are those that a device confirmed, both on the day of acceptance")
    func figures() async throws {
        try await Self.with { databases in
            let database = databases[0]
            let facts: [Fact] = [
                .accepted(channel: 1, oplog: 1, at: Self.evening),
                .accepted(channel: 1, oplog: 2, at: Self.evening + 1_000),
                .accepted(channel: 2, oplog: 1, at: Self.evening),
                .accepted(channel: 3, oplog: 1, at: Self.evening),
                .handedOut(channel: 1, oplog: 1, at: Self.evening + 5),
                .confirmed(channel: 1, oplog: 1, at: Self.evening + 9_000),
                .confirmed(channel: 1, oplog: 1, device: 1, at: Self.evening + 8_000),
                // The acceptance of this push is not known.
                .confirmed(channel: 3, oplog: 2, at: Self.evening),
            ]
            try await database.fold(facts)
            let expected: [[String?]] = [
                ["A", "2023-11-14", "2", "1", "0"], ["A", "2023-11-15", "1", "0", "0"],
                ["B", "2023-11-14", "1", "0", "0"],
            ]
            #expect(try await database.rows(Self.days, columns: 5) == expected)
            // Delivered again: no figure changes.
            try await database.fold(facts)
            for fact in facts { try await database.fold([fact]) }
            #expect(try await database.rows(Self.days, columns: 5) == expected)
            // A push whose acceptance is read late counts, and its arrival too.
            try await database.fold([.accepted(channel: 3, oplog: 2, at: Self.evening)])
            #expect(try await database.rows(Self.days, columns: 5).last == ["B", "2023-11-14", "2", "1", "0"])
        }
    }

    @Test("S2: a non-persistent push counts when it was handed out to a device, and not when it was dropped")
    func live() async throws {
        try await Self.with { databases in
            let database = databases[0]
            try await database.fold(
                [
                    .accepted(channel: 1, oplog: 1, isLive: true, at: Self.evening),
                    .accepted(channel: 1, oplog: 2, isLive: true, at: Self.evening),
                ])
            #expect(try await database.rows(Self.days, columns: 5).isEmpty)
            try await database.fold([.handedOut(channel: 1, oplog: 2, at: Self.evening + 5)])
            #expect(try await database.rows(Self.days, columns: 5) == [["A", "2023-11-14", "1", "0", "0"]])
            let counted = try await StatisticsContents.all(in: database)
            try await StatisticsContents.clear(database)
            try await database.fold(
                [
                    .handedOut(channel: 1, oplog: 2, at: Self.evening + 5),
                    .accepted(channel: 1, oplog: 2, isLive: true, at: Self.evening),
                    .accepted(channel: 1, oplog: 1, isLive: true, at: Self.evening),
                ])
            #expect(try await StatisticsContents.all(in: database) == counted)
        }
    }

    @Test("a global push to many devices is folded with one search per user, also with plans for empty tables")
    func broadcast() async throws {
        try await Self.with { databases in
            let database = databases[0]
            for oplog in Int64(1)...2 {
                let facts = (Int64(1)...2_000).map { device in
                    Fact.handedOut(channel: 5, oplog: oplog, device: device, at: Self.evening)
                }
                try await database.fold(facts)
            }
            try await database.runAsStatistics(TestDatabase.flushCounts)
            let count = try await database.rowsRead(from: "statistics_target")
            // 2,000 in each join of two folds; a full scan for each row would be millions.
            #expect((2_000...8_000).contains(count))
        }
    }

    @Test("S2: a global push counts once for a user or a device when it was handed out, for any number of devices")
    func pulls() async throws {
        try await Self.with { databases in
            let database = databases[0]
            let facts: [Fact] = [
                .accepted(channel: 5, oplog: 1, at: Self.evening), .accepted(channel: 6, oplog: 1, at: Self.evening),
                .confirmed(channel: 5, oplog: 1, device: 1, at: Self.evening + 3),
                .handedOut(channel: 5, oplog: 1, device: 1, at: Self.evening + 1),
                .handedOut(channel: 6, oplog: 1, device: 1, at: Self.evening + 1_000),
                .handedOut(channel: 6, oplog: 1, device: 2, at: Self.evening + 2_000),
                .confirmed(channel: 6, oplog: 1, device: 2, at: Self.evening + 3_000),
            ]
            let sql = """
                SELECT t.kind::text, t.target, d.day::text, d.pushes::text, d.arrivals::text
                FROM statistics_target_day d JOIN statistics_target t USING (target_id) ORDER BY 1, 2, 3
                """
            let expected: [[String?]] = [
                ["0", "u1", "2023-11-14", "1", "1"], ["1", "d1", "2023-11-15", "1", "0"],
                ["1", "d2", "2023-11-15", "1", "1"],
            ]
            for _ in 0..<2 {
                for fact in facts.shuffled() { try await database.fold([fact]) }
                #expect(try await database.rows(sql, columns: 5) == expected)
            }
        }
    }

    @Test("a dead letter counts on the day of its last death, and no longer when its device has confirmed it")
    func deadLetters() async throws {
        try await Self.with { databases in
            let database = databases[0]
            func fold(_ fact: Fact) async throws -> [[String?]] {
                try await database.fold([fact])
                return try await database.rows(Self.days, columns: 5).filter { $0[4] != "0" }.map { [$0[1], $0[4]] }
            }
            let died = try await fold(.resent(channel: 1, oplog: 1, attempts: 7, at: Self.evening))
            #expect(died == [["2023-11-14", "1"]])
            let replayed = try await fold(.resent(channel: 1, oplog: 1, attempts: 7, at: Self.evening + 1_000))
            #expect(replayed == [["2023-11-15", "1"]])
            let other = try await fold(.resent(channel: 1, oplog: 1, device: 1, attempts: 7, at: Self.evening + 1_000))
            #expect(other == [["2023-11-15", "2"]])
            let confirmed = try await fold(.confirmed(channel: 1, oplog: 1, at: Self.evening + 5_000))
            #expect(confirmed == [["2023-11-15", "1"]])
        }
    }

    @Test("arrivals are counted by the time since acceptance, in the buckets that readers expect")
    func buckets() async throws {
        try await Self.with { databases in
            let times: [Int64] = ArrivalTimes.ends.flatMap { [$0 - 1, $0] } + [-5]
            let facts = times.enumerated().flatMap { number, time -> [Fact] in
                [
                    .accepted(channel: 1, oplog: Int64(number), at: Self.evening),
                    .confirmed(channel: 1, oplog: Int64(number), at: Self.evening + time),
                ]
            }
            try await databases[0].fold(facts)
            var expected = [Int](repeating: 0, count: ArrivalTimes.ends.count + 1)
            for time in times { expected[ArrivalTimes.ends.filter { $0 <= time }.count] += 1 }
            let counted = try await databases[0].rows(
                """
                SELECT bucket::text, sum(arrivals)::text FROM statistics_arrival WHERE span_minutes = 1
                GROUP BY 1 ORDER BY min(bucket)
                """, columns: 2)
            #expect(counted == expected.enumerated().map { ["\($0.offset)", "\($0.element)"] })
        }
    }

    @Test("S1: the figures are the same for every order, batching and repetition")
    func disorder() async throws {
        let facts = StatisticsFact.random(count: 600)
        try await Self.with { databases in
            let database = databases[0]
            try await database.fold(facts)
            let expected = try await StatisticsContents.all(in: database)
            for _ in 0..<3 {
                try await StatisticsContents.clear(database)
                var rest = (facts + facts).shuffled()[...]
                while !rest.isEmpty {
                    let size = Int.random(in: 1...40)
                    try await database.fold(Array(rest.prefix(size)))
                    rest = rest.dropFirst(size)
                }
                #expect(try await StatisticsContents.all(in: database) == expected)
            }
        }
    }

    @Test("S1: aggregators that race over the same facts count each once, and none has to retry")
    func racing() async throws {
        let facts = StatisticsFact.random(count: 3_000)
        try await Self.with(connections: 4) { databases in
            try await databases[0].fold(facts)
            let expected = try await StatisticsContents.all(in: databases[0])
            try await StatisticsContents.clear(databases[0])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for database in databases {
                    let shuffled = facts.shuffled()
                    group.addTask {
                        for start in stride(from: 0, to: shuffled.count, by: 100) {
                            let some = Array(shuffled[start..<min(start + 100, shuffled.count)])
                            // A deadlock would throw here.
                            try await database.fold(some)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await StatisticsContents.all(in: databases[0]) == expected)
        }
    }

    @Test("facts about an unknown channel are skipped")
    func lostChannel() async throws {
        try await Self.with { databases in
            try await databases[0].fold(
                [
                    .accepted(channel: 99, oplog: 1, at: Self.evening),
                    .accepted(channel: 1, oplog: 1, at: Self.evening),
                    .handedOut(channel: 99, oplog: 1, at: Self.evening),
                ])
            #expect(try await databases[0].rows(Self.days, columns: 5) == [["A", "2023-11-14", "1", "0", "0"]])
            #expect(try await databases[0].rows("SELECT 'x' FROM statistics_delivery", columns: 1).isEmpty)
        }
    }

    @Test(
        "a batch with a value that the database refuses changes nothing and has its own error",
        arguments: [
            ("nul\0", "22"),
            // Random, so that it cannot be compressed: longer than the limit of an index entry.
            (String(decoding: (0..<6_000).map { _ in UInt8.random(in: 0x21...0x7e) }, as: UTF8.self), "54"),
        ])
    func poison(device: String, stateClass: String) async throws {
        try await Self.with { databases in
            var batch = Fact.batch([.handedOut(channel: 2, oplog: 1, at: Self.evening)])
            let key = StatisticsBatch.OplogKey(channelID: 1, oplogID: OplogID(1))
            batch.confirmed(key, by: DeviceID(device), at: WallTime(milliseconds: Self.evening))
            do throws(PostgresError) {
                try await databases[0].fold(batch)
                Issue.record("the batch was accepted")
            } catch {
                guard case .server(let sqlState) = error.code else { throw error }
                #expect(sqlState.hasPrefix(stateClass))
            }
            #expect(try await databases[0].rows("SELECT 'x' FROM statistics_oplog", columns: 1).isEmpty)
        }
    }
}
