import Foundation
import Logging
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import AMQP
@testable import OplogWriter

@Suite("Maintenance of the oplog", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct OplogMaintenanceTests {
    private static func push(_ key: String) -> OplogStore.Append {
        OplogStore.Append(
            address: ChannelAddress(
                target: TargetAddress(instanceID: InstanceID("app"), kind: .user, target: "u"), bizType: BizType("B")),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [120], isBinary: false, targeting: Targeting(),
                validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0), isPersistent: true))
    }

    /// Removes the partitions of the coming weeks, as if the week had changed several times.
    private static let forgetComingWeeks = """
        DO $$ BEGIN
            FOR week IN 1..3 LOOP EXECUTE format('DROP TABLE %I', oplog_partition(oplog_week(week))); END LOOP;
        END $$
        """

    private static func partitions(_ database: TestDatabase) async throws -> Int {
        try await database.rows("SELECT 'x' FROM pg_inherits WHERE inhparent = 'oplog'::regclass", columns: 1).count
    }

    /// The number of sessions that wait for a lock on the oplog.
    private static func waiting(_ database: TestDatabase) async throws -> Int {
        try await database.rows(
            "SELECT 'x' FROM pg_locks WHERE relation = 'oplog'::regclass AND NOT granted", columns: 1
        ).count
    }

    @Test("partitions are created while a long read of the oplog runs, and no push waits", arguments: [false, true])
    func besideReader(isAttached: Bool) async throws {
        try await TestDatabase.with(connections: 4) { databases in
            let (reader, keeper, writer, watch) = (databases[0], databases[1], databases[2], databases[3])
            try await keeper.configure()
            try await keeper.execute(Self.forgetComingWeeks)
            #expect(try await Self.partitions(watch) == 2)
            // The same lock as a dump takes.
            try await reader.execute(
                "SET idle_in_transaction_session_timeout = 0; BEGIN; LOCK TABLE oplog IN ACCESS SHARE MODE")
            // A push that waits for any lock fails.
            try await writer.executeAsWriter("SET lock_timeout = '1ms'")
            guard isAttached else {
                // Checks the method of this test: it detects the former, blocking creation.
                await Self.makeInPlace(keeper, beside: watch) {
                    await refusal { try await writer.append([Self.push("blocked")]) }?.code
                }
                return try await reader.execute("ROLLBACK")
            }
            try await keeper.run(OplogStore.ensurePartitions(weeksAhead: 3))
            #expect(try await Self.partitions(watch) == 5, "while the lock is held")
            for number in 1...20 { _ = try await writer.append([Self.push("\(number)")]) }
            try await reader.execute("ROLLBACK")
            let owners = try await watch.rows(
                """
                SELECT DISTINCT c.relowner::regrole::text, coalesce(c.relacl::text, '')
                FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'oplog'::regclass
                """, columns: 2)
            #expect(owners == [["mss_owner", ""]], "all partitions are alike")
            let indexes = try await watch.rows(
                """
                SELECT count(x.indexrelid)::text FROM pg_inherits i JOIN pg_index x ON x.indrelid = i.inhrelid
                WHERE i.inhparent = 'oplog'::regclass GROUP BY i.inhrelid
                """, columns: 1)
            #expect(Set(indexes.map { $0[0] }).count == 1)
        }
    }

    /// Creates a partition in place, which waits for the reader, and makes a push at the same time.
    private static func makeInPlace(
        _ keeper: TestDatabase, beside watch: TestDatabase, push: () async -> PostgresError.Code?
    ) async {
        async let made: Void? = try? keeper.execute(
            """
            SET lock_timeout = '5s';
            CREATE TABLE delivery.oplog_later PARTITION OF oplog FOR VALUES FROM ('2100-01-01') TO ('2100-01-08');
            """)
        try? await eventually("it waits", within: .seconds(5)) { try await waiting(watch) == 1 }
        #expect(await push() == .server(sqlState: "55P03"))
        _ = await made
    }

    @Test("maintenance gives up soon on a lock that it waits for, and no push waits behind it")
    func gaveUp() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            let (other, keeper, writer, watch) = (databases[0], databases[1], databases[2], databases[3])
            try await keeper.configure()
            try await keeper.execute(Self.forgetComingWeeks)
            try await other.execute("BEGIN; LOCK TABLE oplog IN SHARE UPDATE EXCLUSIVE MODE")
            try await writer.executeAsWriter("SET lock_timeout = '1ms'")
            async let made = refusal { try await keeper.run(OplogStore.ensurePartitions(weeksAhead: 3)) }
            try await eventually("it waits", within: .seconds(5)) { try await Self.waiting(watch) == 1 }
            _ = try await writer.append([Self.push("1")])
            #expect(await made?.code == .server(sqlState: "55P03"))
            #expect(try await Self.partitions(watch) == 2, "nothing is left behind")
            try await other.execute("ROLLBACK")
            try await keeper.run(OplogStore.ensurePartitions(weeksAhead: 3))
            #expect(try await Self.partitions(watch) == 5)
        }
    }

    @Test("readiness and leases continue while partitions cannot be created; without this week's it is not ready")
    func readiness() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (other, database) = (databases[0], databases[1])
            let login = "keeper_\(UUID().uuidString.replacing("-", with: "").lowercased())"
            try await database.execute("CREATE ROLE \(login) LOGIN IN ROLE mss_writer; \(Self.forgetComingWeeks)")
            try await database.execute("TRUNCATE lease_book")
            try await other.execute("BEGIN; LOCK TABLE oplog IN SHARE UPDATE EXCLUSIVE MODE")
            let configuration = PostgresConfiguration(
                host: "127.0.0.1", port: TestDatabase.port ?? 0, database: database.database, user: login)
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let bus = MessageBus(
                configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "", password: ""), consumptions: [],
                logger: logger)
            let health = HealthState()
            let watch = WriterHeartbeat(
                configuration: configuration, rollouts: RolloutClock(bus: bus), databaseTime: bus.databaseTime,
                health: health, logger: logger)
            let keeper = WriterMaintenance(configuration: configuration, logger: logger)
            func notice(_ what: String, _ isSo: @escaping @Sendable () async throws -> Bool) async throws {
                try await eventually(what, within: .seconds(10), isSo)
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await keeper.run() }
                group.addTask { try await watch.run() }
                try await notice("the record of leases is opened") {
                    try await database.rows("SELECT 'x' FROM lease_book", columns: 1).count == 1
                }
                try await notice("it is ready") { health.readiness.isReady }
                try await other.execute("ROLLBACK")
                try await other.execute(
                    "DO $$ BEGIN EXECUTE format('DROP TABLE %I', oplog_partition(oplog_week(0))); END $$")
                // Without the lock, the maintenance could create the partition before the heartbeat misses it.
                try await other.execute("BEGIN; LOCK TABLE oplog IN SHARE UPDATE EXCLUSIVE MODE")
                try await notice("it is not ready") { !health.readiness.isReady }
                group.cancelAll()
            }
            try await other.execute("ROLLBACK")
            try await database.execute("DROP ROLE \(login)")
        }
    }
}
