import PostgreSQL
import SyncStore
import TestSupport
import Testing

@Suite("The lease record in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct LeaseRecordTests {
    private static let waitingRenewals = """
        SELECT pid::text FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%renew_lease%'
        """

    @Test("a lease stays recorded with its control version until a writer has seen it expire")
    func leaseBook() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func renew(_ epoch: Int64, _ version: Int64) async throws -> Int64 {
                try await database.run(
                    DeviceSessionStore.renewLease(gatewayID: "g", epoch: epoch, controlVersion: version)
                ).epoch
            }
            func change(_ change: LeaseRecord.Change) async throws {
                try await database.run(Query(change.statement) { _ in })
            }
            let new = try await database.run(LeaseRecord.read)
            #expect(new.isComplete && new.leases.isEmpty && new.id != nil, "a new database has given no lease")
            let epoch = try await renew(0, 6)
            let first = try await database.run(LeaseRecord.read)
            #expect(
                first.leases == [.init(gatewayID: "g", epoch: epoch, renewals: 0, controlVersion: 6)])
            _ = try await renew(epoch, 7)
            let second = try await database.run(LeaseRecord.read)
            #expect(second.leases == [.init(gatewayID: "g", epoch: epoch, renewals: 1, controlVersion: 7)])
            try await change(.end(first.leases[0]))
            #expect(try await database.run(LeaseRecord.read) == second, "it was renewed meanwhile")
            try await change(.end(second.leases[0]))
            #expect(try await database.run(LeaseRecord.read) == new)
        }
    }

    @Test("D17: a lease that another process of the same gateway id replaces stays on record until its end")
    func replacedLease() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func renew(_ epoch: Int64, _ version: Int64) async throws -> Int64 {
                try await database.run(
                    DeviceSessionStore.renewLease(gatewayID: "g", epoch: epoch, controlVersion: version)
                ).epoch
            }
            func leases() async throws -> [LeaseRecord.Lease] { try await database.run(LeaseRecord.read).leases }
            func end(_ lease: LeaseRecord.Lease) async throws {
                try await database.run(Query(LeaseRecord.Change.end(lease).statement) { _ in })
            }
            let one = try await renew(0, 6)
            _ = try await renew(one, 7)
            let replaced = LeaseRecord.Lease(gatewayID: "g", epoch: one, renewals: 1, controlVersion: 7)
            let two = try await renew(0, 9)
            let held = LeaseRecord.Lease(gatewayID: "g", epoch: two, renewals: 0, controlVersion: 9)
            #expect(try await leases() == [replaced, held], "the first process may still use version 7")
            #expect(try await database.run(LeaseRecord.read).gatewayIDs == ["g"])
            // Both processes are alive: each renewal of the one replaces the lease of the other.
            let three = try await renew(one, 7)
            #expect(three > two)
            let latest = LeaseRecord.Lease(gatewayID: "g", epoch: three, renewals: 0, controlVersion: 7)
            #expect(try await leases() == [replaced, held, latest])
            try await end(replaced)
            try await end(held)
            #expect(try await leases() == [latest])
            #expect(try await renew(three, 9) == three)
        }
    }

    @Test("D17: of two processes of one gateway id that renew at once, both leases are on record")
    func simultaneousLeases() async throws {
        try await TestDatabase.with(connections: 3) { databases in
            let renewal = DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0, controlVersion: 5)
            try await databases[0].run(Query(PostgresStatement("BEGIN")) { _ in })
            let first = try await databases[0].run(renewal).epoch
            async let other = databases[1].run(
                DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0, controlVersion: 6))
            try await eventually("the second lease waits for the first", within: .seconds(10)) {
                try await databases[2].rows(Self.waitingRenewals, columns: 1).count == 1
            }
            try await databases[0].run(Query(PostgresStatement("COMMIT")) { _ in })
            let second = try await other.epoch
            #expect(
                try await databases[2].run(LeaseRecord.read).leases == [
                    .init(gatewayID: "g", epoch: first, renewals: 0, controlVersion: 5),
                    .init(gatewayID: "g", epoch: second, renewals: 0, controlVersion: 6),
                ])
        }
    }

    @Test("no clock of the database ends a lease: the record has no time, and its readers ask for none")
    func leaseWithoutClock() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let times = try await database.rows(
                """
                SELECT column_name FROM information_schema.columns
                WHERE table_name IN ('gateway', 'replaced_lease') AND data_type LIKE 'timestamp%'
                """, columns: 1)
            #expect(times.isEmpty)
            let readers = try await database.rows(
                "SELECT proname FROM pg_proc WHERE proname = 'renew_lease' AND prosrc ~ '(now|clock_timestamp)[(]'",
                columns: 1)
            #expect(readers.isEmpty)
        }
    }

    @Test(
        "after a crash the lease record is incomplete until a writer has seen the time of a lease pass")
    func leaseBookLost() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func change(_ change: LeaseRecord.Change) async throws {
                try await database.run(Query(change.statement) { _ in })
            }
            let before = try await database.run(LeaseRecord.read)
            try await database.execute("TRUNCATE gateway, lease_book")
            #expect(try await database.run(LeaseRecord.read) == LeaseRecord(id: nil, isComplete: false, leases: []))
            try await change(.open)
            let opened = try await database.run(LeaseRecord.read)
            #expect(opened.id != nil && opened.id != before.id && !opened.isComplete)
            // Another writer opens the record too. A writer that has not seen the crash calls the old record complete.
            try await change(.open)
            try await change(.complete(try #require(before.id)))
            #expect(try await database.run(LeaseRecord.read) == opened)
            try await change(.complete(try #require(opened.id)))
            #expect(try await database.run(LeaseRecord.read).isComplete)
        }
    }

    @Test("V6, D17: a new lease returns the control version in force, and waits for a change in progress")
    func versionInForce() async throws {
        try await TestDatabase.with(connections: 3) { databases in
            try await databases[0].execute("UPDATE control_version SET version = 7")
            let first = try await databases[0].run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            #expect(first.controlVersion == 7)
            try await databases[0].execute("BEGIN; UPDATE control_version SET version = 8")
            let renewed = try await databases[1].run(
                DeviceSessionStore.renewLease(gatewayID: "g", epoch: first.epoch, controlVersion: 7))
            #expect(renewed.epoch == first.epoch, "a renewal waits for nothing")
            async let taken = databases[1].run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            try await eventually("the new lease waits for the change", within: .seconds(10)) {
                try await databases[2].rows(Self.waitingRenewals, columns: 1).count == 1
            }
            try await databases[0].execute("COMMIT")
            let second = try await taken
            #expect(second.epoch > first.epoch && second.controlVersion == 8)
        }
    }
}
