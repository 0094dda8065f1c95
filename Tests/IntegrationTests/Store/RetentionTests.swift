import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Retention and backlogs in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct RetentionTests {
    private static let address = ChannelAddress(
        target: TargetAddress(instanceID: InstanceID("app"), kind: .user, target: "u"), bizType: BizType("B"))

    private static func push(_ key: String) -> OplogStore.Append {
        OplogStore.Append(
            address: address,
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [120], isBinary: false, targeting: Targeting(),
                validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0), isPersistent: true))
    }

    @Test("D11, D18: ended partitions are removed while pushes arrive; rows that keys can still need stay")
    func endedPartitions() async throws {
        try await TestDatabase.with(connections: 3) { databases in
            let (keeper, writer) = (databases[0], databases[1])
            try await keeper.configure()
            let channel = try await keeper.append([Self.push("0")])[0].channelID
            // Ten weeks of the past. The oldest five have ended, and a process died after it had detached one of them.
            try await keeper.execute(
                """
                SET ROLE mss_owner;
                DO $$
                DECLARE monday timestamptz; name text;
                BEGIN
                    FOR week IN 2..10 LOOP
                        monday := (date_trunc('week', now() AT TIME ZONE 'UTC') - make_interval(weeks => week))
                            AT TIME ZONE 'UTC';
                        name := 'oplog_' || to_char(monday AT TIME ZONE 'UTC', 'YYYYMMDD');
                        EXECUTE format('CREATE TABLE delivery.%s PARTITION OF oplog FOR VALUES FROM (%L) TO (%L)',
                            name, monday, monday + interval '7 days');
                        EXECUTE format('INSERT INTO oplog SELECT \(channel), -%s * 1000 - n, ''old'', 1, ''x'', false, 0,
                            '''', '''', 0, 10000, now(), %L FROM generate_series(1, 100) n', week, monday + interval '1 day');
                        IF week = 10 THEN EXECUTE format('ALTER TABLE oplog DETACH PARTITION %s', name); END IF;
                    END LOOP;
                END $$;
                RESET ROLE
                """)
            let ended = try await keeper.run(OplogStore.endedPartitions())
            #expect(ended.count == 5 || ended.count == 6, "by the day of the week")
            #expect(ended.filter { !$0.isAttached }.count == 1)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for number in 1...200 { _ = try await writer.append([Self.push("\(number)")]) }
                }
                for partition in ended {
                    for step in partition.detaching { try await keeper.executeAsWriter(step) }
                    try await keeper.run(partition.drop)
                }
                try await group.waitForAll()
            }
            let left = try await keeper.run(OplogStore.endedPartitions())
            #expect(left.isEmpty)
            let old = try await databases[2].rows(
                "SELECT count(*)::text, (min(created_at) > now() - interval '46 days')::text FROM oplog WHERE oplog_id < 0",
                columns: 2)
            #expect(old == [["\((9 - ended.count) * 100)", "true"]])
        }
    }

    @Test("D10: under a threshold of 10 a backlog of 100,000 reads no more rows than one of 10")
    func thresholdReads() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let channel = try await database.append([Self.push("first")])[0].channelID
            func read() async throws -> Int {
                let newest = OplogStore.newest(of: channel, after: .zero, below: OplogID(.max), limit: 10)
                let start = try await database.run(newest).last.map { OplogID($0.id.value - 1) } ?? .zero
                let page = OplogStore.page(of: channel, after: start, limit: 64)
                return try await database.oplogsRead(by: newest.statement)
                    + database.oplogsRead(by: page.statement)
            }
            try await database.fill(channel, from: 2, to: 10)
            let few = try await read()
            try await database.fill(channel, from: 11, to: 100_000)
            let many = try await read()
            #expect(few == 20 && many <= few + 4, "\(few) and \(many): one row more for a partition at the most")
        }
    }
}
