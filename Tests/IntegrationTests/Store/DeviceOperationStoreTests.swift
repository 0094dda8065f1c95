import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import Relay

@Suite("Device operations in the store", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct DeviceOperationStoreTests {
    private static let app = InstanceID("app")

    private static func newOperation(
        _ id: String, key: String = "1", device: String = "d", user: String = "u", children: [String] = [],
        instance: InstanceID = app
    ) -> DeviceOperationStore.SubmittedOperation {
        DeviceOperationStore.SubmittedOperation(
            instanceID: instance, deviceID: DeviceID(device), userID: UserID(user), session: [1],
            operation: DeviceOperation(
                id: id, component: "C", key: key, name: "update", body: [0, 255],
                children: children.map { DeviceOperation(id: "\(id)-\($0)", component: "L", key: $0, name: "create") },
                submittedAt: WallTime(milliseconds: 5)),
            children: [9])
    }

    private static func store(
        _ operations: [DeviceOperationStore.SubmittedOperation], in database: TestDatabase
    ) async throws -> (stored: Int, known: Int) {
        try await database.runAsRelay(DeviceOperationStore.store(operations, group: "again"))
    }

    private static func claim(
        in database: TestDatabase, by claimer: String = "one", most: Int = 100, lease: Duration = .seconds(60),
        from: WallTime? = nil
    ) async throws -> [DeviceOperationStore.StoredOperation] {
        try await database.runAsRelay(
            DeviceOperationStore.claim(
                [DeviceOperationStore.ClaimRequest(instanceID: app, most: most, from: from)], claimer: claimer,
                lease: lease))
    }

    private static func answer(
        _ held: [DeviceOperationStore.StoredOperation], as outcome: DeviceOperationState?, by claimer: String = "one",
        pause: Duration = .zero, group: String = "g", in database: TestDatabase
    ) async throws -> [Int64: WallTime] {
        let answers = held.map {
            DeviceOperationStore.Answer(
                instanceID: $0.instanceID, number: $0.number, attempt: $0.attempts, outcome: outcome, code: 200,
                message: "m", requestID: "r",
                imported: [0x7B, 0x7D], pause: pause, resultGroup: outcome == nil ? "" : group)
        }
        return try await database.runAsRelay(
            DeviceOperationStore.answer(
                answers, at: WallTime(milliseconds: 1_700_000_000_123), claimer: claimer, lease: .seconds(60)))
    }

    @discardableResult
    private static func finish(
        _ held: [DeviceOperationStore.StoredOperation], group: String = "g", in database: TestDatabase
    ) async throws -> [InstanceID: WallTime] {
        try await database.runAsRelay(
            DeviceOperationStore.finish(
                held.map {
                    DeviceOperationStore.AnnouncedOperation(
                        instanceID: $0.instanceID, number: $0.number, resultGroup: group)
                }))
    }

    private static func find(_ id: String, in database: TestDatabase) async throws
        -> DeviceOperationStore.StoredOperation
    {
        let filter = DeviceOperationStore.Filter(instanceID: app, operationID: id)
        return try requireValue(
            try await database.runAsRelay(DeviceOperationStore.list(filter, most: 1)).first, "no operation \(id)")
    }

    @Test("a repeat is recognised, within one batch too, and the first operation stays unchanged")
    func repeats() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure()
            let first = try await Self.store(
                [Self.newOperation("a"), Self.newOperation("b"), Self.newOperation("a")], in: databases[0])
            #expect(first == (2, 1))
            let second = try await Self.store(
                [Self.newOperation("a", key: "other"), Self.newOperation("a", device: "other")], in: databases[0])
            #expect(second == (1, 1), "another device's operation of the same id is another")
            #expect(try await Self.find("b", in: databases[0]).operation.key == "1")
            let claimed = try await Self.claim(in: databases[0])
            let held = try #require(claimed.first)
            #expect(claimed.count == 1 && held.operation.id == "a" && held.operation.body == [0, 255])
            #expect(held.session == [1] && held.children == [9] && held.attempts == 1)
            #expect(held.operation.submittedAt.milliseconds == 5 && held.userID == UserID("u"))
        }
    }

    @Test("one operation of an entity at a time, in order; children's entities count; others do not wait")
    func order() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store(
                [
                    Self.newOperation("a", key: "1"), Self.newOperation("b", key: "1"),
                    Self.newOperation("c", key: "2", children: ["x"]),
                    Self.newOperation("d", key: "2"), Self.newOperation("e", key: "3", children: ["x"]),
                ], in: database)
            _ = try await Self.store(
                [Self.newOperation("f", key: "1"), Self.newOperation("g", key: "4")], in: database)
            var done: [[String]] = []
            while done.count < 10 {
                let claimed = try await Self.claim(in: database)
                if claimed.isEmpty { break }
                done.append(claimed.map(\.operation.id))
                #expect(
                    try await Self.claim(in: database, by: "two").isEmpty, "a claimed operation cannot be claimed again"
                )
                #expect(try await Self.answer(claimed, as: .accepted, in: database).count == claimed.count)
                #expect(try await Self.claim(in: database).isEmpty, "the next one follows when the outcome was pushed")
                try await Self.finish(claimed, in: database)
            }
            #expect(done == [["a", "c", "g"], ["b", "d", "e"], ["f"]])
            #expect(try await database.rows("SELECT number::text FROM device_operation_turn", columns: 1).isEmpty)
        }
    }

    @Test("an expired claim goes to another relay: the outcome from the former relay is ignored")
    func leases() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store([Self.newOperation("a"), Self.newOperation("b")], in: database)
            let dead = try await Self.claim(in: database, by: "dead", lease: .zero)
            let alive = try await Self.claim(in: database, by: "alive")
            #expect(dead.map(\.operation.id) == ["a"] && alive.map(\.operation.id) == ["a"] && alive[0].attempts == 2)
            #expect(try await Self.answer(dead, as: .refused, by: "dead", in: database).isEmpty)
            #expect(try await Self.answer(dead, as: .refused, by: "alive", in: database).isEmpty, "an older attempt")
            #expect(
                try await Self.answer(alive, as: .accepted, by: "alive", in: database).map(\.key) == [alive[0].number])
            #expect(try await Self.answer(alive, as: .refused, by: "alive", in: database).isEmpty, "it is answered")
            #expect(try await Self.find("a", in: database).outcome == .accepted)
        }
    }

    @Test("an operation that is retried waits for its pause, and later ones of its entity wait with it")
    func pauses() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store([Self.newOperation("a"), Self.newOperation("b")], in: database)
            let first = try await Self.claim(in: database)
            #expect(try await Self.answer(first, as: nil, pause: .seconds(60), in: database).isEmpty)
            #expect(try await Self.claim(in: database).isEmpty)
            try await database.execute("UPDATE device_operation SET next_at = now() WHERE operation_id = 'a'")
            let again = try await Self.claim(in: database)
            #expect(again.map(\.operation.id) == ["a"] && again[0].attempts == 2)
        }
    }

    @Test("from a cursor on, all operations that wait since then are found; the next in line keeps its old turn")
    func turns() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store(
                [Self.newOperation("a", key: "1"), Self.newOperation("b", key: "2"), Self.newOperation("c", key: "1")],
                in: database)
            try await database.execute(
                "UPDATE device_operation SET next_at = now() - interval '1 min' WHERE operation_id IN ('b', 'c')")
            let first = try await Self.claim(in: database, lease: .zero)
            #expect(first.map(\.operation.id) == ["a", "b"])
            let from = try #require(first[0].at)
            _ = try await Self.store([Self.newOperation("d", key: "3")], in: database)
            _ = try await Self.answer([first[0]], as: .accepted, in: database)
            let movedUp = try await Self.finish([first[0]], in: database)
            #expect(try await Self.claim(in: database, lease: .zero, from: from).map(\.operation.id) == ["d"])
            let turn = try #require(movedUp[Self.app])
            #expect(turn < from, "it keeps its place before later operations")
            for (most, found) in [(1, ["b"]), (9, ["b", "c", "d"])] {
                let claimed = try await Self.claim(in: database, most: most, lease: .zero, from: turn)
                #expect(claimed.map(\.operation.id) == found)
            }
        }
    }

    @Test("an operation that waits for a time beyond every pause is found by the next claim from the beginning")
    func setBack() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store(
                [Self.newOperation("a", key: "1"), Self.newOperation("b", key: "2")], in: database)
            try await database.execute("UPDATE device_operation SET next_at = now() + interval '1 day'")
            let now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
            #expect(try await Self.claim(in: database, from: now).isEmpty)
            let claimed = try await Self.claim(in: database, most: 1, lease: .zero)
            #expect(claimed.count == 1, "no more than are asked for")
            let turn = try #require(claimed[0].at)
            #expect(turn < now + .seconds(60), "it hides nothing that follows")
            #expect(try await Self.claim(in: database).count == 2)
        }
    }

    @Test("outcomes that are not pushed yet are found in whole groups, and stay stored until the operation is over")
    func unannouncedOutcomes() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store(
                [Self.newOperation("a", key: "1"), Self.newOperation("b", key: "2"), Self.newOperation("c", key: "3")],
                in: database)
            let claimed = try await Self.claim(in: database)
            _ = try await Self.answer(Array(claimed[..<2]), as: .accepted, group: "g1", in: database)
            _ = try await Self.answer([claimed[2]], as: .refused, group: "g2", in: database)
            func unannounced() async throws -> [String] {
                try await database.runAsRelay(
                    DeviceOperationStore.claimUnannounced(claimer: "two", lease: .seconds(60), most: 1)
                ).map { "\($0.operation.id) \($0.resultGroup) \($0.imported?.count ?? 0)" }
            }
            #expect(try await unannounced().isEmpty, "the relay that recorded the outcome pushes it")
            try await database.execute(
                "UPDATE device_operation SET claimed_until = now() WHERE operation_id IN ('a', 'c')")
            #expect(try await unannounced() == ["a g1 2", "b g1 2"])
            #expect(try await unannounced() == ["c g2 2"])
            try await Self.finish(claimed, group: "g2", in: database)
            #expect(try await Self.find("a", in: database).state == .answered, "it is of another group")
            let over = try await Self.find("c", in: database)
            #expect(
                over.state == .refused && over.operation.body.isEmpty && over.session.isEmpty && over.imported == nil)
        }
    }

    @Test("a repeat of a finished operation has its result pushed again, without the new state")
    func repeatedResult() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store([Self.newOperation("a")], in: database)
            let claimed = try await Self.claim(in: database)
            _ = try await Self.answer(claimed, as: .accepted, in: database)
            try await Self.finish(claimed, in: database)
            #expect(try await Self.store([Self.newOperation("a")], in: database) == (0, 1))
            #expect(try await Self.find("a", in: database).state == .accepted, "its result was pushed a moment ago")
            try await database.execute("UPDATE device_operation SET done_at = now() - interval '1 minute'")
            #expect(try await Self.store([Self.newOperation("a")], in: database) == (0, 1))
            let again = try await database.runAsRelay(
                DeviceOperationStore.claimUnannounced(claimer: "one", lease: .seconds(60), most: 10))
            #expect(again.map(\.outcome) == [.accepted] && again[0].imported == nil && again[0].message == "m")
            #expect(again[0].answeredAt?.milliseconds == 1_700_000_000_123)
            try await Self.finish(again, group: again[0].resultGroup, in: database)
            #expect(try await Self.find("a", in: database).state == .accepted)
        }
    }

    @Test("a retried dead letter runs once, after the later operations, and its operator is recorded")
    func retry() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store([Self.newOperation("a"), Self.newOperation("b")], in: database)
            let first = try await Self.claim(in: database)
            _ = try await Self.answer(first, as: .dead, in: database)
            try await Self.finish(first, in: database)
            let actor = OperationActor("console:alice", from: "10.0.0.1")
            func retry(_ id: String) async throws -> Bool {
                try await database.runAsRelay(
                    DeviceOperationStore.retry(id, of: DeviceID("d"), Self.app, by: actor))
            }
            #expect(try await database.runAsRelay(DeviceOperationStore.counts(of: Self.app))[.dead] == 1)
            #expect(try await retry("b") == false)
            #expect(try await retry("a"))
            #expect(try await retry("a") == false)
            let second = try await Self.claim(in: database)
            #expect(second.map(\.operation.id) == ["b"])
            _ = try await Self.answer(second, as: .accepted, in: database)
            try await Self.finish(second, in: database)
            let third = try await Self.claim(in: database)
            #expect(
                third.map(\.operation.id) == ["a"] && third[0].operation.body == [0, 255] && third[0].attempts == 1)
            #expect(
                try await Self.answer(third, as: .accepted, in: database)
                    == [third[0].number: WallTime(milliseconds: 1_700_000_000_124)],
                "later than the first answer, whatever clock the relay has: devices keep the latest")
            let records = try await database.rows(
                "SELECT actor, subject FROM operation_record WHERE action = 70", columns: 2)
            #expect(records == [["console:alice", "a"]])
        }
    }

    @Test("concurrent submissions, claims and outcomes: each operation runs once, in order for each entity")
    func race() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            try await databases[0].configure()
            let done = Journal()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, database) in databases.enumerated() {
                    group.addTask {
                        var cursor = ClaimCursor()
                        for round in 0..<12 {
                            let takings = (0..<8).map { index in
                                Self.newOperation(
                                    "\(number)-\(round)-\(index)", key: "\(index % 3)", device: "d\(number)",
                                    children: index == 7 ? ["\(round % 2)"] : [])
                            }
                            #expect(try await Self.store(takings, in: database) == (8, 0))
                            try await Self.work(off: database, as: "relay-\(number)", from: &cursor, into: done)
                        }
                    }
                }
                try await group.waitForAll()
            }
            // The last pass: from the beginning, and then as the ends of operations require.
            var cursor = ClaimCursor()
            while try await Self.work(off: databases[0], as: "last", from: &cursor, into: done) {}
            let all = await done.entries
            #expect(all.count == 4 * 12 * 8 && Set(all.map(\.id)).count == all.count)
            for device in 0..<4 {
                for key in 0..<3 {
                    let mine = all.filter { $0.id.hasPrefix("\(device)-") && $0.key == "\(key)" }.map(\.number)
                    #expect(mine == mine.sorted(), "device \(device), key \(key)")
                }
            }
        }
    }

    /// Claims, answers and finishes once. Returns false when there was nothing to claim.
    @discardableResult
    private static func work(
        off database: TestDatabase, as name: String, from cursor: inout ClaimCursor, into done: Journal
    ) async throws -> Bool {
        let claimed = try await claim(in: database, by: name, most: 5, from: cursor.turn(of: app))
        cursor.claimed(claimed)
        let told = try await answer(claimed, as: .accepted, by: name, group: name, in: database)
        for held in claimed where told[held.number] != nil { await done.add(held) }
        cursor.advanced(try await finish(claimed, group: name, in: database))
        return !claimed.isEmpty
    }

    /// The executed operations, in order.
    private actor Journal {
        private(set) var entries: [(id: String, key: String, number: Int64)] = []

        func add(_ held: DeviceOperationStore.StoredOperation) {
            entries.append((held.operation.id, held.operation.key, held.number))
        }
    }

    @Test("a frame and its repeat in one batch keep the order of the first")
    func repeatedFrame() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let frame = (0..<20).map { Self.newOperation("o\($0)", key: "1") }
            _ = try await Self.store(frame + frame, in: database)
            var order: [String] = []
            for _ in frame {
                let claimed = try await Self.claim(in: database)
                order += claimed.map(\.operation.id)
                _ = try await Self.answer(claimed, as: .accepted, group: "g\(order.count)", in: database)
                try await Self.finish(claimed, group: "g\(order.count)", in: database)
            }
            #expect(order == (0..<20).map { "o\($0)" })
        }
    }

    @Test("operations from a time when the database's clock was an hour ahead do not wait for that hour")
    func clockGoesBack() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let names = ["a", "b", "c"]
            _ = try await Self.store(names.map { Self.newOperation($0, key: $0) }, in: database)
            try await database.execute(
                "UPDATE device_operation SET next_at = now() + interval '1 hour' WHERE operation_id IN ('a', 'b')")
            try await database.execute(
                "UPDATE device_operation SET claimed_until = now() + interval '1 hour' WHERE operation_id = 'c'")
            #expect(try await Set(Self.claim(in: database).map(\.operation.id)) == Set(names))
        }
    }

    @Test("figures of a day count each outcome once, with every attempt; a repeat and a lost claim do not count")
    func days() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store(
                [Self.newOperation("a", key: "1"), Self.newOperation("b", key: "2"), Self.newOperation("c", key: "3")],
                in: database)
            let first = try await Self.claim(in: database)
            _ = try await Self.answer(first.filter { $0.operation.id == "a" }, as: nil, in: database)
            let again = try await Self.claim(in: database)
            #expect(again.map(\.operation.id) == ["a"])
            _ = try await Self.answer(again, as: .accepted, group: "g1", in: database)
            _ = try await Self.answer(again, as: .accepted, group: "g1", in: database)
            _ = try await Self.answer(first.filter { $0.operation.id == "b" }, as: .refused, group: "g2", in: database)
            _ = try await Self.answer(first.filter { $0.operation.id == "c" }, as: .dead, by: "two", in: database)
            let days = try await database.runAsRelay(
                DeviceOperationStore.days(of: InstanceID("app"), last: 31))
            #expect(days.count == 1 && days[0].component == first[0].operation.component)
            #expect(days[0].accepted == 1 && days[0].refused == 1 && days[0].dead == 0 && days[0].attempts == 3)
            #expect(try await database.runAsRelay(DeviceOperationStore.days(of: InstanceID("b"), last: 31)).isEmpty)
        }
    }

    @Test("finished operations are removed a day after the instance's retention, and nothing else is")
    func forget() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await Self.store(
                [Self.newOperation("a", key: "1"), Self.newOperation("b", key: "2")], in: database)
            let claimed = try await Self.claim(in: database, most: 1)
            _ = try await Self.answer(claimed, as: .accepted, in: database)
            try await Self.finish(claimed, in: database)
            #expect(try await database.runAsRelay(DeviceOperationStore.forget(most: 10)) == 0)
            try await database.execute(
                "UPDATE device_operation SET done_at = now() - interval '32 days', taken_at = now() - interval '32 days' WHERE state > 2"
            )
            let gone = try await database.runAsRelay(DeviceOperationStore.forget(most: 10))
            #expect(gone == 1)
            #expect(try await database.runAsRelay(DeviceOperationStore.forget(most: 10)) == 0)
        }
    }

    @Test("an instance's endpoint creates the configuration of results, once, with a record")
    func configuration() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            var instance = Instance(
                id: Self.app, name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
            _ = try await database.run(ControlStore.put(instance, by: "test"))
            #expect(try await database.run(ControlStore.configurations).isEmpty)
            instance.relayURL = "https://tenant.example/operations"
            for _ in 0..<2 { _ = try await database.run(ControlStore.put(instance, by: "test")) }
            #expect(try await database.run(ControlStore.instance(Self.app))?.relayURL == instance.relayURL)
            let made = try await database.run(ControlStore.configurations)
            #expect(made.map(\.bizType) == [ReservedSyncID.results] && made[0].kind == .device && made[0].isOnline)
            #expect(made[0].isPersistent && made[0].repush == .all && made[0].fault == nil)
            let records = try await database.rows(
                "SELECT action::text, subject FROM operation_record ORDER BY number", columns: 2)
            #expect(records == [["20", "app"], ["1", "MSS_RESULTS"], ["21", "app"]])
        }
    }
}
