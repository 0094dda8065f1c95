import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

/// The statistics read stored pushes from the oplogs of transactions that they have not read (finding A13).
@Suite("Stored pushes in the statistics", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct AcceptedReadingTests {
    private static let begin = Query(PostgresStatement("BEGIN")) { _ in }
    private static let rollback = Query(PostgresStatement("ROLLBACK")) { _ in }

    private static func push(_ key: String, _ bizType: String = "B") -> OplogStore.Append { .toUser(key, bizType) }

    private static func read(_ database: TestDatabase, rows: Int = 300) async throws -> StatisticsStore.Reading? {
        try await database.runAsStatistics(StatisticsStore.readAccepted(rows: rows))
    }

    /// Reads until nothing is left. Returns the number of pushes.
    private static func readAll(_ database: TestDatabase, rows: Int = 300) async throws -> Int {
        var pushes = 0
        while let reading = try await read(database, rows: rows) {
            pushes += reading.pushes
            if !reading.isBehind { return pushes }
        }
        return pushes
    }

    /// The number of pushes in the figures.
    private static func counted(_ database: TestDatabase) async throws -> Int {
        let rows = try await database.rows("SELECT coalesce(sum(pushes), 0)::text FROM statistics_day", columns: 1)
        return rows[0][0].flatMap { Int($0) } ?? -1
    }

    @Test("S1: a stored push counts once, with the time in the backend's answer; a repeat does not count")
    func once() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            #expect(try await Self.read(database)?.pushes == 0)
            let stored = try await database.append([Self.push("1"), Self.push("2")])
            let reading = try #require(try await Self.read(database))
            #expect(reading.pushes == 2 && !reading.isBehind)
            #expect(reading.newest == stored.map(\.createdAt).max())
            _ = try await database.append([Self.push("1"), Self.push("3")])
            #expect(try await Self.readAll(database) == 1)
            #expect(try await Self.readAll(database) == 0)
            #expect(try await Self.counted(database) == 3)
            let times = try await database.rows(
                """
                SELECT round(extract(epoch FROM accepted_at) * 1000)::bigint::text
                FROM statistics_oplog ORDER BY oplog_id
                """, columns: 1)
            #expect(times.prefix(2).map(\.[0]) == stored.map { "\($0.createdAt.milliseconds)" })
        }
    }

    @Test("S1: a fold counts the stored pushes that its facts name, and the reading no longer writes their rows")
    func afterFacts() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let stored = try await database.append([Self.push("1"), Self.push("2")])
            var batch = StatisticsBatch()
            for oplog in stored {
                let key = StatisticsBatch.OplogKey(channelID: oplog.channelID, oplogID: oplog.oplogID)
                // A fact is later than the acceptance.
                batch.confirmed(key, by: DeviceID("d"), at: oplog.createdAt + .milliseconds(40))
            }
            try await database.runAsStatistics(StatisticsStore.fold(batch))
            #expect(try await Self.counted(database) == 2)
            func rows() async throws -> [[String?]] {
                try await database.rows(
                    "SELECT xmin::text, oplog_id::text FROM statistics_oplog ORDER BY 2", columns: 2)
            }
            let before = try await rows()
            #expect(try await Self.readAll(database) == 2)
            #expect(try await rows() == before)
            #expect(try await Self.counted(database) == 2)
        }
    }

    @Test("S1: a fact about a push whose row has been removed does not count the push again")
    func afterForgetting() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let stored = try await database.append([Self.push("1")])[0]
            #expect(try await Self.readAll(database) == 1)
            let week = try await database.rows("SELECT oplog_partition(oplog_week(0))", columns: 1)[0][0] ?? ""
            // The oplog's week is older than the kept rows: one partition represents all of it.
            try await database.execute(
                """
                ALTER TABLE oplog DETACH PARTITION \(week);
                UPDATE \(week) SET created_at = created_at - interval '36 days';
                ALTER TABLE oplog ATTACH PARTITION \(week)
                    FOR VALUES FROM (now() - interval '37 days') TO (now() - interval '35 days');
                DELETE FROM statistics_oplog
                """)
            var batch = StatisticsBatch()
            let key = StatisticsBatch.OplogKey(channelID: stored.channelID, oplogID: stored.oplogID)
            batch.confirmed(key, by: DeviceID("d"), at: stored.createdAt)
            try await database.runAsStatistics(StatisticsStore.fold(batch))
            #expect(try await Self.counted(database) == 1)
        }
    }

    @Test("S2: a non-persistent push is read as such, also after a recall; a tombstone is no push")
    func live() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func configuration(_ bizType: String, isPersistent: Bool) -> SyncConfiguration {
                SyncConfiguration(
                    instanceID: InstanceID("app"), bizType: BizType(bizType), description: "", kind: .user,
                    isMultiDevice: true, isPersistent: isPersistent, repush: .all, checksSession: false, isOnline: true)
            }
            try await database.configure([
                configuration("LIVE", isPersistent: false), configuration("B", isPersistent: true),
            ])
            for bizType in ["LIVE", "B"] {
                let pushes = [Self.push("kept", bizType), Self.push("recalled", bizType)]
                _ = try await database.append(pushes)
                _ = try await database.runAsOperator(OplogStore.recall(pushes[1].address, ThirdMessageID("recalled")))
            }
            #expect(try await Self.readAll(database) == 4)
            let kinds = try await database.rows(
                """
                SELECT biz_type, is_live::text, count(*)::text
                FROM statistics_oplog JOIN statistics_channel USING (channel_id) GROUP BY 1, 2 ORDER BY 1
                """, columns: 3)
            #expect(kinds == [["B", "false", "2"], ["LIVE", "true", "2"]])
            #expect(try await Self.counted(database) == 2)
        }
    }

    @Test("S1: a slow commit is read after it, once, and delays no other commit")
    func lateCommit() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (database, slow) = (databases[0], databases[1])
            try await database.configure([
                SyncConfiguration(
                    instanceID: InstanceID("app"), bizType: BizType("B"), description: "", kind: .user,
                    isMultiDevice: true, isPersistent: true, repush: .all, checksSession: false, isOnline: true),
                SyncConfiguration(
                    instanceID: InstanceID("app"), bizType: BizType("C"), description: "", kind: .user,
                    isMultiDevice: true, isPersistent: true, repush: .all, checksSession: false, isOnline: true),
            ])
            try await slow.executeAsWriter("BEGIN")
            _ = try await slow.append([Self.push("late")])
            for number in 1...3 {
                _ = try await database.append([Self.push("\(number)", "C")])
                #expect(try await Self.readAll(database, rows: 1) == 1)
            }
            try await slow.executeAsWriter("COMMIT")
            #expect(try await Self.readAll(database) == 1)
            #expect(try await Self.readAll(database) == 0)
            #expect(try await Self.counted(database) == 4)
        }
    }

    @Test("S1: rows of a rolled-back reading are read by the next one, and concurrent readings do not wait")
    func crash() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (database, dying) = (databases[0], databases[1])
            try await database.configure()
            _ = try await database.append([Self.push("1"), Self.push("2")])
            try await dying.runAsStatistics(Self.begin)
            #expect(try await Self.read(dying)?.pushes == 2)
            #expect(try await Self.read(database) == nil)
            try await dying.runAsStatistics(Self.rollback)
            #expect(try await Self.counted(database) == 0)
            #expect(try await Self.read(database)?.pushes == 2)
            #expect(try await Self.read(dying)?.pushes == 0)
            #expect(try await Self.counted(database) == 2)
        }
    }

    @Test("S1: aggregators that read while pushes are stored count each once")
    func together() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            let (first, second) = (databases[2], databases[3])
            try await databases[0].configure()
            let rounds = 60
            try await withThrowingTaskGroup(of: Int.self) { group in
                for (number, writer) in databases.prefix(2).enumerated() {
                    group.addTask {
                        for key in 0..<rounds {
                            _ = try await writer.append((0...key % 3).map { Self.push("\(number)-\(key)-\($0)") })
                        }
                        return 0
                    }
                }
                for reader in [first, second] {
                    group.addTask {
                        var sum = 0
                        for _ in 0..<rounds { sum += try await Self.read(reader, rows: 5)?.pushes ?? 0 }
                        return sum
                    }
                }
                var early = 0
                for try await pushes in group { early += pushes }
                let rest = try await Self.readAll(first, rows: 5)
                #expect(early + rest == 2 * rounds * 2, "each push is in one reading")
            }
            #expect(try await Self.counted(first) == 2 * rounds * 2)
        }
    }

    @Test("a reading takes whole transactions, the oldest first, and says whether more are left")
    func parts() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            for number in 1...3 { _ = try await database.append((1...4).map { Self.push("\(number)-\($0)") }) }
            var readings: [String] = []
            for _ in 0..<4 {
                let reading = try #require(try await Self.read(database, rows: 3))
                readings.append("\(reading.pushes) \(reading.isBehind)")
            }
            #expect(readings.prefix(2) == ["4 true", "4 true"])
            #expect(readings[2].hasPrefix("4 ") && readings[3] == "0 false")
        }
    }

    @Test("R5: in another cluster, unread rows of the dump are read first, then new rows, each once")
    func restored() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await database.append([Self.push("1")])
            #expect(try await Self.readAll(database) == 1)
            _ = try await database.append([Self.push("2"), Self.push("3")])
            // The dump's transactions have numbers that this cluster has used or will use.
            try await database.execute(
                """
                UPDATE oplog SET written_by = written_by + 1000000;
                UPDATE statistics_reading SET read_below = read_below + 1000000;
                UPDATE incarnation SET system = 1; SELECT enter_incarnation()
                """)
            _ = try await database.append([Self.push("4")])
            #expect(try await Self.readAll(database, rows: 2) == 3)
            #expect(try await Self.readAll(database) == 0)
            #expect(try await Self.counted(database) == 4)
            #expect(try await database.rows("SELECT 'x' FROM statistics_reading", columns: 1).count == 1)
            // Another epoch of the same cluster continues after the last one.
            try await database.execute("UPDATE incarnation SET timeline = timeline - 1; SELECT enter_incarnation()")
            _ = try await database.append([Self.push("5")])
            #expect(try await Self.readAll(database) == 1)
        }
    }

    @Test("a fold reads only the oplogs that its facts name, also with a plan for an empty table")
    func oplogsOfFold() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let first = try await database.append([Self.push("first")])[0]
            func fold(_ oplogs: ClosedRange<Int>) async throws {
                var batch = StatisticsBatch()
                for id in oplogs {
                    let key = StatisticsBatch.OplogKey(channelID: first.channelID, oplogID: OplogID(Int64(id)))
                    batch.confirmed(key, by: DeviceID("d"), at: first.createdAt)
                }
                try await database.runAsStatistics(StatisticsStore.fold(batch))
            }
            try await fold(1...1)
            try await database.fill(first.channelID, from: 2, to: 5_000, analyzes: false)
            let week = try await database.rows("SELECT oplog_partition(oplog_week(0))", columns: 1)
            let partition = try #require(week[0][0])
            func looked() async throws -> Int {
                try await database.runAsStatistics(TestDatabase.flushCounts)
                return try await database.rowsRead(from: partition)
            }
            let before = try await looked()
            try await fold(2...101)
            #expect(try await looked() - before <= 200)
        }
    }

    @Test("a reading scans only the oplogs that it takes, also with a plan for an empty table")
    func rowsRead() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            #expect(try await Self.readAll(database) == 0)
            let channel = try await database.append([Self.push("first")])[0].channelID
            try await database.fill(channel, from: 2, to: 5_000)
            #expect(try await Self.readAll(database) == 5_000)
            let week = try await database.rows("SELECT oplog_partition(oplog_week(0))", columns: 1)
            let partition = try #require(week[0][0])
            func looked() async throws -> Int {
                try await database.runAsStatistics(TestDatabase.flushCounts)
                return try await database.rowsRead(from: partition)
            }
            let before = try await looked()
            _ = try await database.append((1...3).map { Self.push("\($0)") })
            #expect(try await Self.readAll(database) == 3)
            #expect(try await looked() - before < 100)
        }
    }
}
