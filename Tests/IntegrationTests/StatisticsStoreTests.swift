import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Statistics in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct StatisticsStoreTests {
    /// One fact, as the aggregator folds it.
    private enum Fact: Hashable {
        case accepted(channel: Int64, oplog: Int64, at: Int64)
        case handedOut(channel: Int64, oplog: Int64, at: Int64)
        case confirmed(channel: Int64, oplog: Int64, at: Int64)
        case stored(channel: Int64, device: String, upto: Int64, at: Int64)
        case skipped(channel: Int64, oplog: Int64, at: Int64)
        case resent(channel: Int64, oplog: Int64, attempts: Int, at: Int64)
        case discarded(channel: Int64, after: Int64, upto: Int64, at: Int64)

        func add(to batch: inout StatisticsBatch) {
            switch self {
            case .accepted(let channel, let oplog, let at):
                batch.accepted(key(channel, oplog), of: StatisticsStoreTests.address(channel), at: time(at))
            case .handedOut(let channel, let oplog, let at):
                batch.handedOut(key(channel, oplog), to: Self.device(at), at: time(at))
            case .confirmed(let channel, let oplog, let at):
                batch.confirmed(key(channel, oplog), by: Self.device(at), at: time(at))
            case .skipped(let channel, let oplog, let at):
                let reason: SkipReason = at % 2 == 0 ? .version : .expired
                batch.skipped(key(channel, oplog), for: Self.device(at), because: reason, at: time(at))
            case .resent(let channel, let oplog, let attempts, let at):
                batch.resent(
                    key(channel, oplog), by: Self.device(oplog), user: "u\(at % 2)", attempts: attempts,
                    isDead: attempts == 7, at: time(at)
                )
            case .discarded(let channel, let after, let upto, let at):
                let receiver = StatisticsBatch.ReceiverKey(channelID: channel, deviceID: Self.device(upto))
                batch.discarded(receiver, after: OplogID(after), upto: OplogID(upto), at: time(at))
            case .stored(let channel, let device, let upto, let at):
                let receiver = StatisticsBatch.ReceiverKey(channelID: channel, deviceID: DeviceID(device))
                batch.stored(receiver, upto: OplogID(upto), at: time(at))
            }
        }

        private func key(_ channel: Int64, _ oplog: Int64) -> StatisticsBatch.OplogKey {
            StatisticsBatch.OplogKey(channelID: channel, oplogID: OplogID(oplog))
        }

        private static func device(_ number: Int64) -> DeviceID { DeviceID("d\(number % 3)") }

        private func time(_ milliseconds: Int64) -> WallTime { WallTime(milliseconds: milliseconds) }
    }

    /// 2023-11-14 23:59:59.500 UTC, half a second before midnight.
    private static let evening: Int64 = 1_700_006_399_500
    private static let days = """
        SELECT instance_id, biz_type, day::text, pushes::text, arrivals::text FROM statistics_day ORDER BY 1, 2, 3
        """

    /// Channels 1 and 2 are of one Sync ID, 3 of another.
    private static func address(_ channel: Int64) -> ChannelAddress {
        let target = TargetAddress(instanceID: InstanceID("app"), kind: .user, target: "u\(channel)")
        return ChannelAddress(target: target, bizType: BizType(channel == 3 ? "B" : "A"))
    }

    private func batch(_ facts: [Fact]) -> StatisticsBatch {
        var batch = StatisticsBatch()
        for fact in facts { fact.add(to: &batch) }
        return batch
    }

    @Test("pushes are distinct oplogs, arrivals those that a device confirmed, both of the day they were accepted on")
    func figures() async throws {
        try await TestDatabase.with(connections: 1) { [self] databases in
            let database = databases[0]
            let facts: [Fact] = [
                .accepted(channel: 1, oplog: 1, at: Self.evening),
                .accepted(channel: 1, oplog: 2, at: Self.evening + 1_000),
                .accepted(channel: 2, oplog: 1, at: Self.evening),
                .accepted(channel: 3, oplog: 1, at: Self.evening),
                .handedOut(channel: 1, oplog: 1, at: Self.evening + 5),
                .confirmed(channel: 1, oplog: 1, at: Self.evening + 9_000),
                .confirmed(channel: 1, oplog: 1, at: Self.evening + 8_000),
                // Its Accepted fact has not come.
                .confirmed(channel: 3, oplog: 2, at: Self.evening),
            ]
            try await database.fold(batch(facts))
            let expected: [[String?]] = [
                ["app", "A", "2023-11-14", "2", "1"], ["app", "A", "2023-11-15", "1", "0"],
                ["app", "B", "2023-11-14", "1", "0"],
            ]
            #expect(try await database.rows(Self.days, columns: 5) == expected)
            // Delivered again: nothing moves.
            try await database.fold(batch(facts))
            for fact in facts { try await database.fold(batch([fact])) }
            #expect(try await database.rows(Self.days, columns: 5) == expected)
            // The late Accepted fact counts the push and its arrival.
            try await database.fold(batch([.accepted(channel: 3, oplog: 2, at: Self.evening)]))
            #expect(try await database.rows(Self.days, columns: 5).last == ["app", "B", "2023-11-14", "2", "1"])
        }
    }

    @Test("the figures are the same whatever the order, the batches and the repetitions")
    func disorder() async throws {
        let facts = Self.randomFacts(count: 300)
        try await TestDatabase.with(connections: 1) { [self] databases in
            let database = databases[0]
            try await database.fold(batch(facts))
            let expected = try await Self.everything(in: database)
            for _ in 0..<3 {
                try await Self.clear(database)
                var rest = (facts + facts).shuffled()[...]
                while !rest.isEmpty {
                    let size = Int.random(in: 1...20)
                    try await database.fold(batch(Array(rest.prefix(size))))
                    rest = rest.dropFirst(size)
                }
                #expect(try await Self.everything(in: database) == expected)
            }
        }
    }

    @Test("aggregators that race over the same facts count each once")
    func racing() async throws {
        let facts = Self.randomFacts(count: 2_000)
        try await TestDatabase.with(connections: 4) { [self] databases in
            try await databases[0].fold(batch(facts))
            let expected = try await Self.everything(in: databases[0])
            try await Self.clear(databases[0])
            try await withThrowingTaskGroup(of: Void.self) { group in
                for database in databases {
                    let shuffled = facts.shuffled()
                    group.addTask { [self] in
                        for start in stride(from: 0, to: shuffled.count, by: 100) {
                            try await foldOften(Array(shuffled[start..<min(start + 100, shuffled.count)]), in: database)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await Self.everything(in: databases[0]) == expected)
        }
    }

    @Test("a device's stored position only rises")
    func stored() async throws {
        try await TestDatabase.with(connections: 1) { [self] databases in
            for upto: Int64 in [5, 9, 7, 9] {
                try await databases[0].fold(batch([.stored(channel: 1, device: "d", upto: upto, at: upto * 1_000)]))
            }
            let rows = try await databases[0].rows(
                "SELECT upto::text, extract(epoch FROM stored_at)::bigint::text FROM statistics_stored", columns: 2)
            #expect(rows == [["9", "9"]])
        }
    }

    @Test(
        "a batch that the database refuses for what it says changes nothing and is told apart",
        arguments: [
            ("nul\0", "22"),
            // Random, so that it does not shrink: longer than an entry of an index may be.
            (String(decoding: (0..<6_000).map { _ in UInt8.random(in: 0x21...0x7e) }, as: UTF8.self), "54"),
        ])
    func poison(device: String, stateClass: String) async throws {
        try await TestDatabase.with(connections: 1) { [self] databases in
            let facts: [Fact] = [
                .accepted(channel: 1, oplog: 1, at: Self.evening),
                .stored(channel: 1, device: device, upto: 1, at: Self.evening),
            ]
            do throws(PostgresError) {
                try await databases[0].fold(batch(facts))
                Issue.record("the batch was taken")
            } catch {
                guard case .server(let sqlState) = error.code else { throw error }
                #expect(sqlState.hasPrefix(stateClass))
            }
            #expect(try await databases[0].rows(Self.days, columns: 5).isEmpty)
        }
    }

    /// What the aggregator does: repeats what may be repeated.
    private func foldOften(_ facts: [Fact], in database: TestDatabase) async throws {
        for _ in 0..<50 {
            do throws(PostgresError) {
                return try await database.fold(batch(facts))
            } catch {
                guard error.mayRetry else { throw error }
            }
        }
    }

    private static func randomFacts(count: Int) -> [Fact] {
        (0..<count).map { _ in
            let (channel, oplog) = (Int64.random(in: 1...3), Int64.random(in: 1...200))
            let at = evening + Int64.random(in: -86_400_000...86_400_000)
            return switch Int.random(in: 0..<7) {
            case 0: .accepted(channel: channel, oplog: oplog, at: at)
            case 1: .handedOut(channel: channel, oplog: oplog, at: at)
            case 2: .confirmed(channel: channel, oplog: oplog, at: at)
            case 3: .skipped(channel: channel, oplog: oplog, at: at)
            case 4: .resent(channel: channel, oplog: oplog, attempts: Int.random(in: 2...7), at: at)
            case 5: .discarded(channel: channel, after: Int64.random(in: 0..<oplog), upto: oplog, at: at)
            // The moment belongs to the position, as it does for a device that reports each once.
            default: .stored(channel: channel, device: "d\(oplog % 5)", upto: oplog, at: evening + oplog)
            }
        }
    }

    private static func clear(_ database: TestDatabase) async throws {
        try await database.execute(
            """
            TRUNCATE statistics_channel, statistics_oplog, statistics_stored, statistics_day, statistics_delivery,
                statistics_discarded
            """)
    }

    /// Every figure, and that the days are the sum of the oplogs.
    private static func everything(in database: TestDatabase) async throws -> [[String?]] {
        let sums = """
            SELECT c.instance_id, c.biz_type, (s.accepted_at AT TIME ZONE 'UTC')::date::text, count(*)::text,
                count(s.first_confirmed_at)::text
            FROM statistics_oplog s JOIN statistics_channel c ON c.channel_id = s.channel_id
            WHERE s.accepted_at IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
            """
        let counted = try await database.rows(days, columns: 5).filter { $0[3] != "0" || $0[4] != "0" }
        #expect(try await database.rows(sums, columns: 5) == counted)
        let oplogs = try await database.rows(
            """
            SELECT channel_id::text, oplog_id::text, accepted_at::text, first_handed_out_at::text,
                first_confirmed_at::text FROM statistics_oplog ORDER BY channel_id, oplog_id
            """, columns: 5)
        let stored = try await database.rows(
            "SELECT channel_id::text, device_id, upto::text, stored_at::text FROM statistics_stored ORDER BY 1, 2",
            columns: 4)
        let deliveries = try await database.rows(
            """
            SELECT channel_id::text, oplog_id::text, device_id, handed_out_at::text, attempts::text, skipped_at::text,
                skip_reason::text, confirmed_at::text, dead_at::text, dead_user
            FROM statistics_delivery ORDER BY channel_id, oplog_id, device_id
            """, columns: 10)
        let discarded = try await database.rows(
            """
            SELECT channel_id::text, device_id, after::text, upto::text, discarded_at::text
            FROM statistics_discarded ORDER BY 1, 2, 4
            """, columns: 5)
        return counted + oplogs + stored + deliveries + discarded
    }
}
