import AMQP
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SyncModel
import TestSupport
import Testing

@testable import OplogWriter
@testable import SyncStore

/// A database with one store, and one with four, must behave alike. `DeliveryStoreContractTests`,
/// `SubscriptionStoreTests` and `RolloutStoreTests` compare both too.
@Suite("Store schemas", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct StoreSchemaTests {
    private static let four = StoreLayout(count: 4)
    private static let app = InstanceID("app")
    private static let kinds: [(bizType: String, kind: ChannelKind)] = [
        ("CHAT", .user), ("SOLO", .user), ("DEVICE", .device), ("NEWS", .globalUser), ("LIVE", .user),
    ]

    private static func address(_ bizType: String, _ target: String) -> ChannelAddress {
        let kind = kinds.first { $0.bizType == bizType }?.kind ?? .user
        return ChannelAddress(
            target: TargetAddress(instanceID: app, kind: kind, target: target), bizType: BizType(bizType))
    }

    private static func push(_ bizType: String, _ target: String, _ key: String) -> OplogStore.Append {
        OplogStore.Append(
            address: address(bizType, target),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [1], isBinary: false, targeting: Targeting(),
                validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0), isPersistent: true))
    }

    /// A user and a device whose channels are in two stores, and in another one than the global channels.
    private static func spread(over stores: StoreLayout) -> (user: String, device: String) {
        func name(_ prefix: String, awayFrom taken: Set<Int>) -> String {
            (0..<1_000).map { "\(prefix)\($0)" }.first {
                stores.count == 1 || !taken.contains(stores.number(of: app, target: $0))
            } ?? prefix
        }
        let global = stores.number(of: app, target: "")
        let user = name("u", awayFrom: [global])
        return (user, name("d", awayFrom: [global, stores.number(of: app, target: user)]))
    }

    private static func with(
        stores count: Int, connections: Int = 1, _ body: @Sendable ([TestDatabase]) async throws -> Void
    ) async throws {
        try await TestDatabase.with(connections: connections, stores: StoreLayout(count: count)) { databases in
            try await databases[0].configure(
                kinds.map { bizType, kind in
                    SyncConfiguration(
                        instanceID: app, bizType: BizType(bizType), description: "", kind: kind,
                        isMultiDevice: bizType != "SOLO", isPersistent: bizType != "LIVE", repush: .all,
                        checksSession: false, isOnline: true, isImmediate: kind == .globalUser)
                })
            try await body(databases)
        }
    }

    private static func registration(
        _ device: String, _ user: String, lease: Int64, number: UInt64 = 1
    ) -> DeviceSessionStore.Registration {
        DeviceSessionStore.Registration(
            gatewayID: "g", gatewayEpoch: lease, instanceID: app, deviceID: DeviceID(device), storeID: StoreID("s"),
            userID: UserID(user),
            traits: DeviceTraits(operatingSystem: .iOS, appVersion: "1.0", slot: DeviceSlot(of: DeviceID(device))),
            isForeground: true, connectionNumber: number, registrationNumber: number, connectionEpoch: 0,
            takesOwnership: true, verdictMilliseconds: 60_000, suspended: [])
    }

    // MARK: The number of stores

    @Test("the first migration fixes the number of stores; a runner and a process with another number say so")
    func fixed() async throws {
        try await TestDatabase.with(connections: 1, stores: Self.four) { databases in
            let database = databases[0]
            #expect(try await database.migrate(stores: Self.four) == [])
            try await database.verify(stores: Self.four)
            try await database.verify()
            let other = await refusal { _ = try await database.migrate(stores: .single) }
            #expect(other?.message.contains("has 4 stores, but MSS_POSTGRES_STORES is 1: set it to 4") == true)
            let process = await refusal { try await database.verify(stores: StoreLayout(count: 2)) }
            #expect(process?.message.contains("set it to 4") == true && process?.mayRetry == false)
        }
        try await TestDatabase.with(connections: 1) { databases in
            // A database of a build that knew no stores.
            try await databases[0].execute("DROP TABLE schema_store")
            let other = await refusal { _ = try await databases[0].migrate(stores: Self.four) }
            #expect(other?.message.contains("has 1 store, but MSS_POSTGRES_STORES is 4: set it to 1") == true)
            _ = try await databases[0].migrate()
            try await databases[0].verify(stores: .single)
        }
    }

    @Test("the database and the writer compute the same store of a target") func sameHash() async throws {
        try await Self.with(stores: 4) { databases in
            for target in ["", "u", "用户", "a/b", #"\x41\"#] + (0..<40).map({ "user-\($0)" }) {
                let number = Self.four.number(of: Self.app, target: target)
                let answers = try await databases[0].rows(
                    """
                    SELECT \((0..<4).map { "delivery_\($0).is_of_store('app', '\(target)')::text" }
                        .joined(separator: ", "))
                    """, columns: 4)
                #expect(answers[0].firstIndex(of: "true") == number, "\(target)")
            }
        }
    }

    // MARK: No transaction spans two stores

    @Test("a batch with pushes of two stores is refused and stores nothing") func mixedBatch() async throws {
        try await Self.with(stores: 4) { databases in
            let (user, device) = Self.spread(over: Self.four)
            let pushes = [Self.push("CHAT", user, "1"), Self.push("DEVICE", device, "2")]
            // 23514: check_violation.
            let error = await refusal { _ = try await databases[0].asDelivery { try $0.append(pushes) } }
            #expect(error?.code == .server(sqlState: "23514"))
            let stored = try await databases[0].rows(
                "SELECT 'x' FROM oplog UNION ALL SELECT 'y' FROM channel", columns: 1)
            #expect(stored.isEmpty)
        }
    }

    @Test("a statement that names no store reads all of them, and cannot write") func everyStore() async throws {
        try await Self.with(stores: 4) { databases in
            let database = databases[0]
            let pushes = (0..<8).map { Self.push("CHAT", "u\($0)", "k") }
            let stored = try await database.append(pushes)
            #expect(try await database.rows("SELECT 'x' FROM oplog", columns: 1).count == 8)
            #expect(Set(stored.map { Self.four.number(ofID: $0.channelID) }).count > 1)
            let advance = SyncPointStore.Advance(
                channelID: stored[0].channelID, deviceID: "d", storeID: "s", upto: stored[0].oplogID)
            // 42883: undefined_function; 55000: the view cannot be written.
            #expect(
                await refusal { _ = try await database.run(OplogStore.append(pushes)) }?.sqlState == "42883")
            #expect(
                await refusal { try await database.run(SyncPointStore.advance([advance])) }?.sqlState == "55000")
        }
    }

    // MARK: Operations

    @Test("D2, D18: a push is stored in the store of its target, ids name the store, and a repeat finds it")
    func push() async throws {
        try await Self.with(stores: 4) { databases in
            let database = databases[0]
            for number in 0..<40 {
                let push = Self.push(number % 2 == 0 ? "CHAT" : "DEVICE", "t\(number % 10)", "k\(number)")
                let own = Self.four.number(of: Self.app, target: push.address.target.target)
                let first = try await database.append([push])[0]
                #expect(Self.four.number(ofID: first.channelID) == own)
                let places = try await database.rows(
                    "SELECT third_message_id FROM delivery_\(own).oplog WHERE channel_id = \(first.channelID)",
                    columns: 1)
                #expect(places.contains(["k\(number)"]))
                let again = try await database.append([push])[0]
                #expect(again.isDuplicate && again.oplogID == first.oplogID)
            }
        }
    }

    @Test("D1: a session gets the channels of all its stores, and pushes to each of them find it", arguments: [1, 4])
    func connect(stores count: Int) async throws {
        try await Self.with(stores: count) { databases in
            let database = databases[0]
            let (user, device) = Self.spread(over: database.stores)
            let pushes = [
                Self.push("CHAT", user, "1"), Self.push("SOLO", user, "2"), Self.push("DEVICE", device, "3"),
                Self.push("NEWS", "", "4"),
            ]
            let stored = try await database.append(pushes)
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            let open = SessionStoreCommand.open(Self.registration(device, user, lease: lease), sessionDigest: [])
            guard case .opened(let opened) = try await database.asDelivery({ try $0.perform([open])[0].get() }) else {
                Issue.record("it is registered")
                return
            }
            #expect(Set(opened.channels.map(\.address)) == Set(pushes.map(\.address)))
            #expect(opened.registered.ownsUser)
            for (push, appended) in zip(pushes, stored) {
                let read = PageRead(
                    channelID: appended.channelID, after: .zero, start: .zero, limit: 8,
                    owner: push.address.bizType.text == "SOLO" ? DeviceID(device) : nil)
                let page = try await database.asDelivery { try $0.pages([read])[0].get() }
                #expect(page.entries.map(\.thirdMessageID) == [push.oplog.thirdMessageID])
                let presence = try await database.run(DeviceSessionStore.presence(of: [push.address]))
                #expect(presence.map(\.deviceID.text) == (push.address.target.kind.isGlobal ? [] : [device]))
            }
            // One command acknowledges channels of several stores.
            let advances = zip(pushes, stored).map { push, appended in
                let isSolo = push.address.bizType.text == "SOLO"
                return SyncPointStore.Advance(
                    channelID: appended.channelID, deviceID: isSolo ? "" : device, storeID: isSolo ? "" : "s",
                    userID: push.address.target.kind == .globalUser ? user : "", upto: appended.oplogID,
                    acknowledged: appended.oplogID, storedBy: device)
            }
            try await database.asDelivery { try $0.record([], advances) }
            let again = SessionStoreCommand.open(
                Self.registration(device, user, lease: lease, number: 2), sessionDigest: [])
            guard case .opened(let state) = try await database.asDelivery({ try $0.perform([again])[0].get() }) else {
                Issue.record("it is registered again")
                return
            }
            #expect(state.channels.allSatisfy { $0.syncPoint == $0.head && $0.head > .zero })
        }
    }

    @Test("the sweep and the statistics find the pushes of all stores", arguments: [1, 4])
    func sweepAndFigures(stores count: Int) async throws {
        try await Self.with(stores: count) { databases in
            let database = databases[0]
            let (user, device) = Self.spread(over: database.stores)
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            let open = SessionStoreCommand.open(Self.registration(device, user, lease: lease.epoch), sessionDigest: [])
            _ = try await database.asDelivery { try $0.perform([open])[0].get() }
            let pushes = [
                Self.push("CHAT", user, "1"), Self.push("DEVICE", device, "2"), Self.push("NEWS", "", "3"),
                Self.push("CHAT", "\(user)-other", "4"),
            ]
            _ = try await database.append(pushes)
            let swept = try await database.run(DeviceSessionStore.sweep(gatewayID: "g", since: lease.snapshot))
            #expect(Set(swept.channels.map(\.address)) == Set(pushes.prefix(3).map(\.address)))
            let read = try await database.runAsStatistics(
                Query(PostgresStatement("SELECT oplogs FROM read_accepted_oplogs(100)")) { rows throws(PostgresError) in
                    try rows.first(Int.self)
                })
            #expect(read == 4)
            let counted = "SELECT sum(pushes)::text FROM statistics_day"
            #expect(try await database.rows(counted, columns: 1) == [["4"]])
        }
    }

    @Test("H4: outcomes of non-persistent pushes of several stores are recorded together", arguments: [1, 4])
    func outcomes(stores count: Int) async throws {
        try await Self.with(stores: count) { databases in
            let database = databases[0]
            let pushes = (0..<8).map { Self.push("LIVE", "u\($0)", "k") }
            let live = try await database.append(pushes).map(\.livePush)
            try await database.asDelivery { try $0.recordOutcomes(of: live) }
            #expect(try await database.append(pushes).allSatisfy { $0.isDuplicate && !$0.awaitsOutcome })
        }
    }

    @Test("H7: a push of any store is traced, recalled once, and its tombstone is in its channel", arguments: [1, 4])
    func recall(stores count: Int) async throws {
        try await Self.with(stores: count) { databases in
            let database = databases[0]
            for number in 0..<6 {
                let push = Self.push("CHAT", "u\(number)", "k")
                let stored = try await database.append([push])[0]
                let name = TraceStore.Name(
                    instanceID: Self.app, bizType: push.address.bizType, target: push.address.target.target,
                    key: .thirdMessageID(push.oplog.thirdMessageID))
                let found = try await database.runAsOperator(TraceStore.find(name))
                #expect(found?.channelID == stored.channelID && found?.oplog.id == stored.oplogID)
                let elsewhere = try await database.runAsOperator(TraceStore.find(name), of: InstanceID("other"))
                #expect(elsewhere == nil, "SEC10: another instance's rows are hidden in the views too")
                let store = database.stores.store(of: push.address.target)
                let recall = OplogStore.recall(push.address, push.oplog.thirdMessageID, by: "console:alice", in: store)
                let first = try await database.runAsOperator(recall)
                #expect(first?.oplogID == stored.oplogID)
                #expect(try await database.runAsOperator(recall)?.tombstone.id == first?.tombstone.id)
                let page = try await database.run(OplogStore.page(of: stored.channelID, after: .zero, limit: 8))
                #expect(page.map(\.recalls) == [stored.oplogID])
            }
            let records = "SELECT 'x' FROM operation_record WHERE action = 11"
            #expect(try await database.rows(records, columns: 1).count == 6)
        }
    }

    @Test("the stages of a roll-out are made in the store of the global channels, and stopped there")
    func rollout() async throws {
        try await Self.with(stores: 4) { databases in
            let database = databases[0]
            let (store, actor) = (Self.four.globalStore(of: Self.app), OperationActor("console:alice"))
            let (news, id) = (BizType("NEWS"), ThirdMessageID("r"))
            let name = Rollout.Name(instanceID: Self.app, bizType: news, id: id)
            let plan = RolloutPlan(id: id, stages: [100, 1_000, 10_000], interval: .seconds(60))
            let oplog = Self.push("NEWS", "", "r").oplog
            let start = RolloutStore.start(plan, of: Self.app, news, oplog, by: actor, in: store)
            #expect(try await database.runAsOperator(start) == .done)
            #expect(try await database.runAsOperator(start) == .unchanged)
            #expect(try await database.runAsOperator(RolloutStore.pause(name, by: actor, in: store)) == .done)
            #expect(try await database.runAsOperator(RolloutStore.resume(name, by: actor, in: store)) == .done)
            try await database.execute("UPDATE rollout SET due_at = now()")
            for other in Self.four.stores where other != store {
                #expect(try await database.run(RolloutStore.widenDue(in: other)) == false, "it is not its roll-out")
            }
            #expect(try await database.run(RolloutStore.widenDue(in: store)))
            let stages = try await database.run(RolloutStore.unannounced(limit: 9))
            #expect(stages.map(\.stage) == [1] && Self.four.store(ofID: stages[0].channelID) == store)
            let stop = try await database.runAsOperator(RolloutStore.stop(name, by: actor, in: store))
            #expect(stop.outcome == .done && stop.recalls.count == 2)
            try await database.run(RolloutStore.forgetEnded(in: Self.four))
        }
    }

    @Test("partitions are created, missed, detached and dropped in each store")
    func partitions() async throws {
        try await Self.with(stores: 4) { databases in
            let database = databases[0]
            #expect(try await database.run(OplogStore.hasPresentPartition(in: Self.four)))
            try await database.execute(
                """
                DO $$ BEGIN EXECUTE format(
                    'DROP TABLE delivery_2.%I', delivery_2.oplog_partition(delivery_2.oplog_week(0))); END $$
                """)
            #expect(try await database.run(OplogStore.hasPresentPartition(in: Self.four)) == false)
            for store in Self.four.stores {
                try await database.run(OplogStore.ensurePartitions(weeksAhead: 4, of: store))
                let weeks = try await database.rows(
                    "SELECT 'x' FROM pg_inherits WHERE inhparent = '\(store.schema).oplog'::regclass", columns: 1)
                #expect(weeks.count == 6)
            }
            #expect(try await database.run(OplogStore.hasPresentPartition(in: Self.four)))
            try await database.execute(
                """
                CREATE TABLE delivery_3.oplog_20200106 (LIKE delivery_3.oplog INCLUDING ALL);
                ALTER TABLE delivery_3.oplog ATTACH PARTITION delivery_3.oplog_20200106
                    FOR VALUES FROM ('2020-01-06') TO ('2020-01-13');
                ALTER TABLE delivery_3.oplog_20200106 OWNER TO mss_owner
                """)
            for store in Self.four.stores {
                for partition in try await database.run(OplogStore.endedPartitions(of: store)) {
                    for step in partition.detaching { try await database.executeAsWriter(step) }
                    try await database.executeAsWriter("SET ROLE mss_writer")
                    try await database.run(partition.drop)
                }
            }
            let dropped = "SELECT (to_regclass('delivery_3.oplog_20200106') IS NULL)::text"
            #expect(try await database.rows(dropped, columns: 1) == [["true"]])
        }
    }

    @Test("a new epoch raises the ids of each store, and they still name it") func epochs() async throws {
        try await Self.with(stores: 4) { databases in
            let database = databases[0]
            let before = try await database.append((0..<8).map { Self.push("CHAT", "u\($0)", "k") })
            try await database.execute("SELECT begin_epoch()")
            let after = try await database.append((0..<8).map { Self.push("CHAT", "v\($0)", "k") })
            let epoch = try #require(try await database.rows("SELECT epoch::text FROM incarnation", columns: 1)[0][0])
            for (number, push) in after.enumerated() {
                #expect(push.channelID > Int64(epoch)! << 40 && push.oplogID.value > Int64(epoch)! << 40)
                #expect(
                    Self.four.number(ofID: push.channelID) == Self.four.number(of: Self.app, target: "v\(number)"))
            }
            #expect(Set(before.map(\.channelID)).isDisjoint(with: after.map(\.channelID)))
        }
    }
}
