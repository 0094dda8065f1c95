import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Roll-outs in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct RolloutStoreTests {
    private static let app = InstanceID("app")
    private static let news = BizType("NEWS")
    private static let address = ChannelAddress(
        target: TargetAddress(instanceID: app, kind: .globalDevice, target: ""), bizType: news)
    private static let actor: OperationActor = "console:alice"

    private static func name(_ id: String = "r") -> Rollout.Name {
        Rollout.Name(instanceID: app, bizType: news, id: ThirdMessageID(id))
    }

    private static func oplog(_ id: String, validUntil: Int64 = 0) -> Oplog {
        Oplog(
            id: .zero, thirdMessageID: ThirdMessageID(id), payload: Array("hello".utf8), isBinary: false,
            targeting: Targeting(operatingSystem: .iOS, minimumVersion: "2"),
            validUntil: WallTime(milliseconds: validUntil), createdAt: WallTime(milliseconds: 0), isPersistent: true)
    }

    private static func start(
        _ id: String = "r", stages: [Int] = [100, 1_000, 10_000], interval: Duration? = nil, bizType: BizType = news,
        validUntil: Int64 = 0
    ) -> Query<RolloutOutcome> {
        RolloutStore.start(
            RolloutPlan(id: ThirdMessageID(id), stages: stages, interval: interval), of: app, bizType,
            oplog(id, validUntil: validUntil), by: actor)
    }

    /// Runs the body with a database that has instance "app" with the global configuration `NEWS`.
    private static func with(
        connections: Int = 1, _ body: @Sendable ([TestDatabase]) async throws -> Void
    ) async throws {
        try await TestDatabase.with(connections: connections) { databases in
            try await databases[0].configure()
            let configuration = SyncConfiguration(
                instanceID: app, bizType: news, description: "", kind: .globalDevice, isMultiDevice: false,
                isPersistent: true, repush: .all, checksSession: false, isOnline: true, isImmediate: true)
            _ = try await databases[0].run(ControlStore.put(configuration, by: "test"))
            try await body(databases)
        }
    }

    private static func rollout(_ database: TestDatabase, _ id: String = "r") async throws -> Rollout {
        try requireValue(try await database.runAsOperator(RolloutStore.rollout(name(id))), "the roll-out \(id)")
    }

    private static func oplogs(_ database: TestDatabase) async throws -> [Oplog] {
        let channel = try await database.rows(
            "SELECT channel_id::text FROM channel WHERE biz_type = 'NEWS'", columns: 1)
        guard let id = channel.first?[0].flatMap({ Int64($0) }) else { return [] }
        return try await database.run(OplogStore.page(of: id, after: .zero, limit: 64))
    }

    private static func records(_ database: TestDatabase) async throws -> [String] {
        try await database.run(RecordStore.oldest(after: 0, limit: 200)).records
            .filter { $0.subject == "NEWS" && $0.actionCode >= 60 }.map { "\($0.action?.word ?? "?") \($0.actor)" }
    }

    /// Moves the due time of the next stage into the past.
    private static func passTime(_ database: TestDatabase) async throws {
        try await database.execute("UPDATE rollout SET due_at = now() WHERE due_at IS NOT NULL")
    }

    @Test(
        "each stage is an oplog of the added slots alone, under an id of its own, with the push's restrictions")
    func stages() async throws {
        try await Self.with { databases in
            let database = databases[0]
            #expect(try await database.runAsOperator(Self.start()) == .done)
            for stage in [2, 3] {
                #expect(
                    try await database.runAsOperator(RolloutStore.widen(Self.name(), to: stage, by: Self.actor))
                        == .done)
            }
            let (plan, oplogs) = (RolloutPlan(id: ThirdMessageID("r")), try await Self.oplogs(database))
            #expect(oplogs.map(\.thirdMessageID.text) == ["r~1", "r~2", "r~3"])
            #expect(oplogs.map(\.targeting.share) == (1...3).map { plan.share(of: $0) })
            #expect(
                oplogs.allSatisfy {
                    $0.payload == Array("hello".utf8) && $0.targeting.operatingSystem == .iOS
                        && $0.targeting.minimumVersion == "2"
                })
            let rollout = try await Self.rollout(database)
            #expect(rollout.state == .completed && rollout.stages.map(\.oplogID) == oplogs.map(\.id))
            #expect(
                try await Self.records(database) == [
                    "start-rollout \(Self.actor.name)", "widen-rollout \(Self.actor.name)",
                    "widen-rollout \(Self.actor.name)",
                ])
            let kept = try await database.rows("SELECT payload::text FROM rollout", columns: 1)
            #expect(kept == [[nil]], "the content is removed with the last stage")
        }
    }

    @Test("a repeated request changes nothing; of many concurrent widenings one succeeds, and it is recorded once")
    func repeats() async throws {
        try await Self.with(connections: 4) { databases in
            func all(_ query: Query<RolloutOutcome>) async throws -> [RolloutOutcome] {
                try await withThrowingTaskGroup(of: RolloutOutcome.self) { group in
                    for database in databases { group.addTask { try await database.runAsOperator(query) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
            }
            for query in [
                Self.start(), RolloutStore.widen(Self.name(), to: 2, by: Self.actor),
                RolloutStore.pause(Self.name(), by: Self.actor), RolloutStore.resume(Self.name(), by: Self.actor),
                RolloutStore.widen(Self.name(), to: 3, by: Self.actor),
            ] {
                let outcomes = try await all(query)
                #expect(outcomes.count { $0 == .done } == 1 && outcomes.count { $0 == .unchanged } == 3, "\(outcomes)")
            }
            #expect(try await Self.oplogs(databases[0]).count == 3)
            #expect(
                try await Self.records(databases[0]).map { String($0.prefix { $0 != " " }) } == [
                    "start-rollout", "widen-rollout", "pause-rollout", "resume-rollout", "widen-rollout",
                ])
        }
    }

    @Test("by time: of four concurrent writers one makes a stage, and the next is due an interval later")
    func byTime() async throws {
        try await Self.with(connections: 4) { databases in
            #expect(try await databases[0].runAsOperator(Self.start(interval: .seconds(60))) == .done)
            #expect(try await databases[0].run(RolloutStore.widenDue()) == false, "the interval has not passed")
            for stage in [2, 3] {
                try await Self.passTime(databases[0])
                let made = try await withThrowingTaskGroup(of: Bool.self) { group in
                    for database in databases { group.addTask { try await database.run(RolloutStore.widenDue()) } }
                    return try await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
                }
                let rollout = try await Self.rollout(databases[0])
                #expect(made == 1 && rollout.reached == stage && rollout.changedBy == "schedule")
                guard stage == 2 else { continue }
                let wait = try #require(rollout.dueAt).milliseconds - rollout.changedAt.milliseconds
                #expect(abs(wait - 60_000) < 5_000)
            }
            #expect(try await Self.rollout(databases[0]).dueAt == nil)
            #expect(try await databases[0].run(RolloutStore.widenDue()) == false)
        }
    }

    @Test("paused, it does not widen by time or by hand; resumed, it continues with the rest of the wait")
    func paused() async throws {
        try await Self.with { databases in
            let database = databases[0]
            _ = try await database.runAsOperator(Self.start(interval: .seconds(600)))
            try await database.execute("UPDATE rollout SET due_at = now() + interval '100 seconds'")
            #expect(try await database.runAsOperator(RolloutStore.pause(Self.name(), by: Self.actor)) == .done)
            let paused = try await Self.rollout(database)
            #expect(paused.state == .paused && paused.dueAt == nil)
            #expect(abs((paused.waitLeft ?? .zero).wholeMilliseconds - 100_000) < 5_000)
            #expect(try await database.run(RolloutStore.widenDue()) == false)
            let widened = try await database.runAsOperator(RolloutStore.widen(Self.name(), to: 2, by: Self.actor))
            #expect(widened == .paused)
            #expect(try await database.runAsOperator(RolloutStore.resume(Self.name(), by: Self.actor)) == .done)
            let resumed = try await Self.rollout(database)
            let left = try #require(resumed.dueAt).milliseconds - resumed.changedAt.milliseconds
            #expect(resumed.state == .running && abs(left - 100_000) < 5_000)
        }
    }

    @Test("stopped, it recalls every stage, also when it was complete; a repeat has the same answer")
    func stopped() async throws {
        try await Self.with { databases in
            let database = databases[0]
            _ = try await database.runAsOperator(Self.start(interval: .seconds(60)))
            _ = try await database.runAsOperator(RolloutStore.widen(Self.name(), to: 2, by: Self.actor))
            let first = try await database.runAsOperator(RolloutStore.stop(Self.name(), by: Self.actor))
            #expect(first.outcome == .done && first.recalls.map(\.oplogID.value) == [1, 2])
            #expect(first.recalls.map(\.tombstone.id.value) == [3, 4] && first.recalls[0].headBefore.value == 2)
            #expect(
                first.recalls.map(\.tombstone.targeting.share.size) == [100, 900], "tombstones are for the same devices"
            )
            let again = try await database.runAsOperator(RolloutStore.stop(Self.name(), by: Self.actor))
            #expect(again.outcome == .unchanged && again.recalls.map(\.tombstone.id.value) == [3, 4])
            for query in [
                RolloutStore.widen(Self.name(), to: 3, by: Self.actor),
                RolloutStore.pause(Self.name(), by: Self.actor), RolloutStore.resume(Self.name(), by: Self.actor),
            ] { #expect(try await database.runAsOperator(query) == .stopped) }
            #expect(try await database.run(RolloutStore.widenDue()) == false)
            let marks = try await Self.oplogs(database)
            #expect(marks.map(\.recalls?.value) == [1, 2] && marks.map(\.targeting.share.size) == [100, 900])
            #expect(try await Self.records(database).last == "stop-rollout \(Self.actor.name)")
            _ = try await database.runAsOperator(Self.start("whole", stages: [1, 10_000]))
            _ = try await database.runAsOperator(RolloutStore.widen(Self.name("whole"), to: 2, by: Self.actor))
            let whole = try await database.runAsOperator(RolloutStore.stop(Self.name("whole"), by: Self.actor))
            #expect(whole.outcome == .done && whole.recalls.count == 2)
        }
    }

    @Test("impossible requests are refused and change nothing")
    func refusals() async throws {
        try await Self.with { databases in
            let database = databases[0]
            func run(_ query: Query<RolloutOutcome>) async throws -> RolloutOutcome {
                try await database.runAsOperator(query)
            }
            #expect(try await run(Self.start(bizType: BizType("B"))) == .offline, "not global")
            #expect(try await run(Self.start(bizType: BizType("NONE"))) == .offline)
            #expect(try await run(Self.start(validUntil: 1_000)) == .expired)
            _ = try await database.append([OplogStore.Append(address: Self.address, oplog: Self.oplog("r~1"))])
            #expect(try await run(Self.start()) == .taken)
            _ = try await database.run(ControlStore.setOnline(false, Self.app, Self.news, by: "test"))
            #expect(try await run(Self.start("off")) == .offline)
            #expect(try await database.rows("SELECT 'x' FROM rollout", columns: 1).isEmpty)
            #expect(try await Self.records(database).isEmpty)
            _ = try await database.run(ControlStore.setOnline(true, Self.app, Self.news, by: "test"))
            #expect(try await run(Self.start("on")) == .done)
            #expect(try await run(RolloutStore.widen(Self.name("on"), to: 3, by: Self.actor)) == .ahead)
            #expect(try await run(RolloutStore.widen(Self.name("none"), to: 1, by: Self.actor)) == .missing)
            #expect(try await database.runAsOperator(RolloutStore.stop(Self.name("none"), by: "x")).outcome == .missing)
        }
    }

    @Test("by time: an offline configuration delays it; ended validity stops it, an id in use pauses it")
    func obstacles() async throws {
        try await Self.with { databases in
            let database = databases[0]
            _ = try await database.runAsOperator(Self.start(interval: .seconds(60)))
            try await Self.passTime(database)
            _ = try await database.run(ControlStore.setOnline(false, Self.app, Self.news, by: "test"))
            #expect(try await database.run(RolloutStore.widenDue()) == false)
            _ = try await database.run(ControlStore.setOnline(true, Self.app, Self.news, by: "test"))
            #expect(try await database.run(RolloutStore.widenDue()))
            #expect(try await Self.rollout(database).reached == 2)
            _ = try await database.append([OplogStore.Append(address: Self.address, oplog: Self.oplog("r~3"))])
            try await Self.passTime(database)
            #expect(try await database.run(RolloutStore.widenDue()))
            #expect(try await Self.rollout(database).state == .paused)
            _ = try await database.runAsOperator(Self.start("ends", interval: .seconds(60)))
            try await database.execute("UPDATE rollout SET valid_until_ms = 1000 WHERE third_message_id = 'ends'")
            try await Self.passTime(database)
            #expect(try await database.run(RolloutStore.widenDue()))
            #expect(try await Self.rollout(database, "ends").state == .stopped)
            #expect(try await Self.records(database).suffix(1) == ["stop-rollout schedule"])
        }
    }

    @Test("every stage is announced until a writer has recorded that; a deleted configuration removes its roll-outs")
    func announcements() async throws {
        try await Self.with { databases in
            let database = databases[0]
            _ = try await database.runAsOperator(Self.start())
            _ = try await database.runAsOperator(RolloutStore.widen(Self.name(), to: 2, by: Self.actor))
            for stage in [1, 2] {
                let unannounced = try await database.run(RolloutStore.unannounced(limit: 10))
                #expect(unannounced.map(\.stage) == [stage] && unannounced.map(\.oplog.id.value) == [Int64(stage)])
                #expect(
                    unannounced[0].isImmediate && unannounced[0].address == Self.address && !unannounced[0].isRecalled)
                try await database.run(RolloutStore.markAnnounced(Self.name(), stage: stage))
            }
            #expect(try await database.run(RolloutStore.unannounced(limit: 10)).isEmpty)
            _ = try await database.run(ControlStore.setOnline(false, Self.app, Self.news, by: "test"))
            _ = try await database.run(ControlStore.delete(Self.app, Self.news, by: "test"))
            #expect(try await database.rows("SELECT 'x' FROM rollout", columns: 1).isEmpty)
        }
    }

    @Test("a roll-out that ended long ago is removed after its stages were announced") func forgetting() async throws {
        try await Self.with { databases in
            let database = databases[0]
            for id in ["old", "unannounced", "running"] { _ = try await database.runAsOperator(Self.start(id)) }
            for id in ["old", "unannounced"] {
                _ = try await database.runAsOperator(RolloutStore.stop(Self.name(id), by: "x"))
            }
            try await database.run(RolloutStore.markAnnounced(Self.name("old"), stage: 1))
            try await database.execute("UPDATE rollout SET changed_at = now() - interval '36 days'")
            try await database.run(RolloutStore.forgetEnded())
            let left = try await database.rows("SELECT third_message_id FROM rollout ORDER BY 1", columns: 1)
            #expect(left == [["running"], ["unannounced"]])
        }
    }

    @Test("SEC10: an operator's connection starts, changes and reads roll-outs of its own instance alone")
    func operatorScope() async throws {
        try await Self.with { databases in
            let (database, other) = (databases[0], InstanceID("other"))
            _ = try await database.runAsOperator(Self.start())
            #expect(try await database.runAsOperator(Self.start("x"), of: other) == .offline)
            #expect(try await database.runAsOperator(Self.start(), of: other) == .offline)
            let widen = RolloutStore.widen(Self.name(), to: 2, by: Self.actor)
            #expect(try await database.runAsOperator(widen, of: other) == .missing)
            let stop = try await database.runAsOperator(RolloutStore.stop(Self.name(), by: Self.actor), of: other)
            #expect(stop.outcome == .missing && stop.recalls.isEmpty)
            #expect(try await database.runAsOperator(RolloutStore.rollouts(of: Self.app, limit: 9), of: other).isEmpty)
            #expect(try await database.runAsOperator(RolloutStore.rollouts(of: Self.app, limit: 9)).count == 1)
        }
    }

    @Test("H7: a dry run counts the devices of the share separately") func crowds() async throws {
        try await Self.with { databases in
            let database = databases[0]
            let lease = try await database.run(
                DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0, controlVersion: 1)
            ).epoch
            let share = DeviceShare(start: 9_000, size: 3_000)
            var inside: Int64 = 0
            for number in 0..<40 {
                let slot = DeviceSlot(of: DeviceID("d\(number)"))
                if share.contains(slot) { inside += 1 }
                _ = try await database.run(
                    DeviceSessionStore.register(
                        DeviceSessionStore.Registration(
                            gatewayID: "g", gatewayEpoch: lease, instanceID: Self.app, deviceID: DeviceID("d\(number)"),
                            storeID: StoreID("s"), userID: nil,
                            traits: DeviceTraits(operatingSystem: .iOS, appVersion: "1", slot: slot),
                            isForeground: true, connectionNumber: 1, registrationNumber: 1, connectionEpoch: 0,
                            takesOwnership: false,
                            verdictMilliseconds: 0,
                            suspended: [])))
            }
            let crowds = try await database.runAsOperator(TraceStore.deviceGroups(of: Self.address, share: share))
            #expect(crowds.count == 2)
            for crowd in crowds {
                let isInside = share.contains(crowd.presence.traits.slot)
                #expect(crowd.devices == (isInside ? inside : 40 - inside))
            }
        }
    }
}
