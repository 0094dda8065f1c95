import DeliveryHistory
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Oplogs in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct OplogStoreTests {
    private static func address(_ user: String, _ bizType: String = "B") -> ChannelAddress {
        ChannelAddress(
            target: TargetAddress(instanceID: InstanceID("app"), kind: .user, target: user), bizType: BizType(bizType))
    }

    /// A push to a user's channel.
    private static func push(
        _ user: String, _ key: String, payload: String = "p", validUntil: Int64 = 0
    ) -> OplogStore.Append {
        OplogStore.Append(
            address: address(user),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: Array(payload.utf8), isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: validUntil),
                createdAt: WallTime(milliseconds: 0), isPersistent: true))
    }

    @Test("D18: an append reads no other oplogs of its channel, also with a plan for an empty table")
    func readsOfAppend() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            // PostgreSQL keeps the plan of a statement in a function from the sixth call on.
            for number in 0..<8 { _ = try await database.append([Self.push("u", "first \(number)")]) }
            let channel = try await database.append([Self.push("u", "last")])[0].channelID
            try await database.fill(channel, from: 100, to: 5_000, analyzes: false)
            let week = try await database.rows("SELECT oplog_partition(oplog_week(0))", columns: 1)
            let partition = try #require(week[0][0])
            let before = try await database.rowsReadByNow(from: partition)
            let answers = try await database.append([Self.push("u", "last"), Self.push("u", "new")])
            #expect(answers.map(\.isDuplicate) == [true, false])
            #expect(try await database.rowsReadByNow(from: partition) - before <= 10)
        }
    }

    @Test("eight writers race over few channels and repeated keys: each key once, no id twice")
    func racing() async throws {
        try await TestDatabase.with(connections: 8) { databases in
            try await databases[0].configure()
            let answers = try await withThrowingTaskGroup(of: [(String, OplogStore.Appended)].self) { group in
                for (writer, database) in databases.enumerated() {
                    group.addTask {
                        var generator = SeededGenerator(seed: UInt64(writer))
                        var answers: [(String, OplogStore.Appended)] = []
                        for _ in 0..<60 {
                            let pushes = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                                let user = Int.random(in: 0..<4, using: &generator)
                                return Self.push("u\(user)", "k\(Int.random(in: 0..<150, using: &generator))")
                            }
                            let appended = try await database.append(pushes)
                            #expect(appended.count == pushes.count)
                            answers += zip(pushes, appended).map { push, answer in
                                ("\(push.address.target.target) \(push.oplog.thirdMessageID.text)", answer)
                            }
                        }
                        return answers
                    }
                }
                return try await group.reduce(into: []) { $0 += $1 }
            }
            for (key, group) in Dictionary(grouping: answers, by: \.0) {
                #expect(group.filter { !$0.1.isDuplicate }.count == 1, "\(key)")
                #expect(Set(group.map(\.1.oplogID)).count == 1, "\(key): a repeat returns the first one's id")
            }
            for (_, channel) in Dictionary(grouping: answers, by: \.1.channelID) {
                let ids = channel.filter { !$0.1.isDuplicate }.map(\.1.oplogID)
                #expect(Set(ids).count == ids.count)
            }
            let stored = try await databases[0].rows("SELECT count(*)::text FROM oplog", columns: 1)[0][0]
            #expect(stored == "\(answers.filter { !$0.1.isDuplicate }.count)")
        }
    }

    @Test(
        "after the clock was set back or ahead, stored oplogs are read, and a repeat is a repeat", arguments: [-1, 1])
    func clockJumps(days: Int) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            // Changes the rows as if the configuration, or the first push, were from another day.
            if days < 0 {
                try await database.execute(
                    "UPDATE sync_configuration SET data_since = data_since + interval '20 hours'")
            }
            let first = try await database.append([Self.push("u", "a")])[0]
            if days > 0 {
                try await database.execute("UPDATE oplog SET created_at = created_at + interval '20 hours'")
            }
            let again = try await database.append([Self.push("u", "a"), Self.push("u", "b")])
            #expect(again[0].isDuplicate && again[0].oplogID == first.oplogID)
            let page = try await database.run(OplogStore.page(of: first.channelID, after: .zero, limit: 10))
            #expect(page.map(\.thirdMessageID.text) == ["a", "b"])
        }
    }

    @Test("a batch with a repeated key stores it once and returns the same id for both")
    func repeatInBatch() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure()
            let pushes = [Self.push("u", "a"), Self.push("u", "b"), Self.push("u", "a"), Self.push("v", "a")]
            let answers = try await databases[0].append(pushes)
            #expect(answers.map(\.isDuplicate) == [false, false, true, false])
            #expect(answers.map(\.oplogID.value) == [1, 2, 1, 1])
            #expect(answers.map(\.headBefore.value) == [0, 0, 0, 0])
            #expect(answers.map(\.headAfter.value) == [2, 2, 2, 1])
            let again = try await databases[0].append([Self.push("u", "c"), Self.push("u", "b")])
            #expect(again.map(\.isDuplicate) == [false, true])
            #expect(again.map(\.oplogID.value) == [3, 2] && again.map(\.headBefore.value) == [2, 2])
            #expect(again.map(\.headAfter.value) == [4, 4])
        }
    }

    @Test("keys with the same index hash are distinguished by their text") func hashes() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure()
            _ = try await databases[0].append([Self.push("u", "a")])
            // The row now has another text under the hash of "a".
            try await databases[0].execute("UPDATE oplog SET third_message_id = 'z'")
            let answer = try await databases[0].append([Self.push("u", "a")])
            #expect(answer.map(\.isDuplicate) == [false])
        }
    }

    @Test("a page has valid, stored oplogs above the position, in order, and at most the requested number")
    func pages() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let pushes = [
                Self.push("u", "1"), Self.push("u", "2", validUntil: 1_000), Self.push("u", "3"),
                Self.push("u", "4", payload: ""), Self.push("u", "5"),
            ]
            let channel = try await database.append(pushes)[0].channelID
            // As if the configuration had been non-persistent at that time.
            try await database.execute("UPDATE oplog SET payload = NULL WHERE oplog_id = 3")
            func ids(after: Int64, limit: Int) async throws -> [Int64] {
                try await database.run(OplogStore.page(of: channel, after: OplogID(after), limit: limit))
                    .map(\.id.value)
            }
            #expect(try await ids(after: 0, limit: 10) == [1, 4, 5])
            #expect(try await ids(after: 1, limit: 1) == [4])
            #expect(try await ids(after: 5, limit: 10) == [])
            #expect(try await database.run(OplogStore.head(of: channel)) == OplogID(5))
            let newest = try await database.run(
                OplogStore.newest(of: channel, after: .zero, below: OplogID(5), limit: 1))
            #expect(newest.map(\.id.value) == [4])
        }
    }

    @Test("D17: without an online configuration of an enabled instance no push is stored, row by row")
    func offline() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            var (strange, device) = (Self.push("u", "2"), Self.push("u", "3"))
            strange.address = Self.address("u", "C")
            device.address = ChannelAddress(
                target: TargetAddress(instanceID: InstanceID("app"), kind: .device, target: "u"), bizType: BizType("B"))
            let answers = try await database.run(
                OplogStore.append([Self.push("u", "1"), strange, device, Self.push("u", "4")]))
            #expect(answers.map { $0?.oplogID.value } == [1, nil, nil, 2])
            for change in ["UPDATE sync_configuration SET is_online = false", "UPDATE instance SET is_enabled = false"]
            {
                try await database.configure()
                try await database.execute(change)
                #expect(try await database.run(OplogStore.append([Self.push("u", "5")])).allSatisfy { $0 == nil })
            }
            #expect(try await database.rows("SELECT count(*)::text FROM oplog", columns: 1) == [["2"]])
            #expect(try await database.rows("SELECT count(*)::text FROM channel", columns: 1) == [["1"]])
        }
    }

    @Test("D17: a Sync ID that is deleted and created again has neither the old data nor the old keys; ids continue")
    func recreated() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let old = try await database.append([Self.push("u", "1"), Self.push("u", "2")])
            let (app, bizType) = (InstanceID("app"), BizType("B"))
            #expect(try await database.run(ControlStore.delete(app, bizType, by: "test")) == .refused, "it is online")
            _ = try await database.run(ControlStore.setOnline(false, app, bizType, by: "test"))
            #expect(try await database.run(ControlStore.delete(app, bizType, by: "test")).version != nil)
            try await database.configure()
            let new = try await database.append([Self.push("u", "2")])
            #expect(new.map(\.isDuplicate) == [false] && new.map(\.oplogID.value) == [3])
            let channel = old[0].channelID
            let page = try await database.run(OplogStore.page(of: channel, after: .zero, limit: 10))
            #expect(page.map(\.id.value) == [3])
            let standings = try await database.run(
                OplogStore.newest(of: channel, after: .zero, below: OplogID(9), limit: 9))
            #expect(standings.map(\.id.value) == [3])
            let records = try await database.run(RecordStore.page(RecordFilter(), limit: 9)).records
            let actions: [OperationAction] = [
                .createConfiguration, .deleteConfiguration, .disableConfiguration, .createConfiguration,
                .createInstance,
            ]
            #expect(records.map(\.action) == actions, "the newest first; the same instance again is no change")
        }
    }

    @Test("no oplog is kept longer than 30 days, whatever the caller asks for") func validity() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure()
            let far = Int64(4_000_000_000_000)
            let answers = try await databases[0].append([Self.push("u", "1", validUntil: far), Self.push("u", "2")])
            for answer in answers {
                let kept = answer.validUntil.milliseconds - answer.createdAt.milliseconds
                #expect(abs(kept - 30 * 86_400_000) <= 1)
            }
        }
    }

    @Test("a promoted standby's ids begin above all ids of the old primary, and the old primary is refused")
    func incarnations() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await database.append([Self.push("u", "1")])
            // As after a promotion: the server is on a later timeline than the recorded one.
            try await database.execute("UPDATE incarnation SET timeline = timeline - 1; SELECT enter_incarnation()")
            let begin = try await Self.epoch(database) << 40
            let later = try await database.append([Self.push("u", "2"), Self.push("u", "3")])
            #expect(begin >= 1 << 40 && later.map(\.oplogID.value) == [begin + 1, begin + 2])
            // Numbers of channels and leases too, because gateways remember numbers from the lost part.
            #expect(try await database.append([Self.push("v", "1")])[0].channelID > begin)
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            #expect(lease.epoch > begin)
            try await database.execute("UPDATE incarnation SET timeline = timeline + 1")
            let error = await refusal {
                try await database.execute("SELECT enter_incarnation()")
            }
            #expect(error?.message.contains("old primary") == true)
        }
    }

    @Test(
        "restored into another cluster, or on an operator's command, the database begins a higher epoch")
    func restored() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.execute("SELECT enter_incarnation()")
            #expect(try await Self.epoch(database) == 0)
            _ = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            // A dump has the other cluster's identifier, and can come from a later timeline than that of the new
            // cluster.
            try await database.execute(
                "UPDATE incarnation SET system = 1, timeline = timeline + 7; SELECT enter_incarnation()")
            let first = try await Self.epoch(database)
            // Sessions and leases of the other cluster are removed.
            #expect(try await database.rows("SELECT gateway_id FROM gateway", columns: 1).isEmpty)
            let today = try await database.rows("SELECT (current_date - date '2026-01-01')::text", columns: 1)
            #expect(first == Int64(today[0][0] ?? ""))
            try await database.execute("SELECT enter_incarnation()")
            #expect(try await Self.epoch(database) == first)
            try await database.execute("SELECT begin_epoch()")
            #expect(try await Self.epoch(database) == first + 1)
        }
    }

    @Test("a version or a revision of a lost change is never used for another change")
    func controlNumbers() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            func numbers() async throws -> [Int64] {
                let rows = try await database.rows(
                    "SELECT version::text FROM control_version UNION ALL SELECT revision::text FROM sync_configuration",
                    columns: 1)
                return rows.compactMap { $0[0].flatMap { Int64($0) } }
            }
            let kept = try await numbers()
            // These changes are lost with the primary: the standby has `kept`.
            try await database.configure(isMultiDevice: false)
            let lost = try await numbers()
            #expect(zip(lost, kept).allSatisfy(>))
            try await database.execute(
                "UPDATE control_version SET version = \(kept[0]); UPDATE sync_configuration SET revision = \(kept[1])")
            try await database.execute("SELECT begin_epoch()")
            let begin = try await Self.epoch(database) << 40
            #expect(try await numbers().allSatisfy { $0 >= begin } && begin > lost[0])
            // Rows that are created in the new epoch do not reuse numbers of the former epoch either.
            try await database.configure([
                SyncConfiguration(
                    instanceID: InstanceID("app"), bizType: BizType("C"), description: "", kind: .user,
                    isMultiDevice: true, isPersistent: true, repush: .all, checksSession: false, isOnline: true)
            ])
            #expect(try await numbers().allSatisfy { $0 >= begin })
            let counters = try await database.rows(
                "SELECT attrelid::regclass::text FROM pg_attribute WHERE attname = 'revision' AND atttypid <> 20",
                columns: 1)
            #expect(counters.isEmpty, "an integer has no room for an epoch")
        }
    }

    @Test("channels that another transaction has locked are reported apart, and no caller waits for them")
    func lockedChannels() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (holder, database) = (databases[0], databases[1])
            try await database.configure()
            _ = try await database.append([Self.push("u", "1"), Self.push("v", "1")])
            let all = ["u", "v", "new"].map { Self.address($0) }
            #expect(try await database.run(OplogStore.lockedChannels(of: all)).isEmpty)
            try await holder.execute("BEGIN; UPDATE channel SET head = head + 1 WHERE target = 'u'")
            try await database.executeAsWriter("SET lock_timeout = '1ms'")
            #expect(try await database.run(OplogStore.lockedChannels(of: all)) == [Self.address("u")])
            try await holder.execute("ROLLBACK")
        }
    }

    @Test("the channels of a batch are locked in the order of their addresses, also those that it makes")
    func lockOrder() async throws {
        try await TestDatabase.with(connections: 3) { databases in
            let (holder, database, observer) = (databases[0], databases[1], databases[2])
            try await database.configure()
            // Their rows are in the opposite order; "b" is new.
            for user in ["e", "d", "c", "a"] { _ = try await database.append([Self.push(user, "1")]) }
            let all = ["a", "b", "c", "d", "e"]
            try await holder.execute("BEGIN; UPDATE channel SET head = head WHERE target = 'd'")
            async let answers = database.append(all.map { Self.push($0, "2") })
            try await eventually("the batch waits for the channel", within: .seconds(10)) {
                try await observer.rows("SELECT FROM pg_locks WHERE NOT granted", columns: 0).count == 1
            }
            let locked = try await observer.run(OplogStore.lockedChannels(of: all.map { Self.address($0) }))
            #expect(locked == Set(["a", "c", "d"].map { Self.address($0) }))
            // The new channel is not visible, but a second transaction that makes it waits for the first one.
            let made = "INSERT INTO channel (instance_id, kind, target, biz_type) VALUES ('app', 0, 'b', 'B')"
            let error = await refusal { try await observer.execute("SET lock_timeout = '1ms'; \(made)") }
            #expect(error?.sqlState == "55P03")
            try await holder.execute("ROLLBACK")
            #expect(try await answers.map(\.oplogID.value) == [2, 1, 2, 2, 2])
        }
    }

    private static func epoch(_ database: TestDatabase) async throws -> Int64 {
        let rows = try await database.rows("SELECT epoch::text FROM incarnation", columns: 1)
        return Int64(rows[0][0] ?? "") ?? -1
    }

    @Test("a process that has met the promoted standby refuses the old primary, which lacks the new epoch")
    func oldPrimary() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.withLogin(memberOf: "mss_writer") { writer in
                try await writer.connectAsProcess()
                try await database.execute("UPDATE incarnation SET epoch = epoch + 1")
                try await writer.connectAsProcess()
                // The old primary, which was not reachable, has the earlier epoch.
                try await database.execute("UPDATE incarnation SET epoch = epoch - 1")
                let error = await refusal { try await writer.connectAsProcess() }
                #expect(error?.message.contains("old primary") == true && error?.mayRetry == true)
                try await database.execute("UPDATE incarnation SET epoch = epoch + 1")
                try await writer.connectAsProcess()
            }
        }
    }

    @Test("sync points only rise, and never above the channel's head") func syncPoints() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let pushes = (1...5).map { Self.push("u", "\($0)") }
            let channel = try await database.append(pushes)[0].channelID
            func advance(_ points: Int64...) async throws -> String? {
                let advances = points.map {
                    SyncPointStore.Advance(channelID: channel, deviceID: "d", storeID: "s", upto: OplogID($0))
                }
                try await database.run(SyncPointStore.advance(advances))
                return try await database.rows("SELECT oplog_id::text FROM sync_point", columns: 1)[0][0]
            }
            #expect(try await advance(1, 3, 2) == "3")
            #expect(try await advance(2) == "3")
            #expect(try await advance(99) == "5")
        }
    }

    @Test("H7: a recall removes the payload, appends one tombstone for any number of repeats, and keeps the key")
    func recall() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let database = databases[0]
            try await database.configure()
            let channel = try await database.append([Self.push("u", "a"), Self.push("u", "b"), Self.push("u", "c")])[0]
                .channelID
            let recall = OplogStore.recall(Self.address("u"), ThirdMessageID("b"))
            let answers = try await withThrowingTaskGroup(of: OplogStore.Recalled?.self) { group in
                for database in databases { group.addTask { try await database.runAsOperator(recall) } }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0?.oplogID == OplogID(2) && $0?.tombstone.id == OplogID(4) })
            let page = try await database.run(OplogStore.page(of: channel, after: .zero, limit: 10))
            #expect(page.map(\.id.value) == [1, 3, 4] && page.map(\.recalls) == [nil, nil, OplogID(2)])
            // A threshold counts data alone. The tombstones of the discarded range are still returned.
            let newest = try await database.run(
                OplogStore.newest(of: channel, after: .zero, below: OplogID(.max), limit: 2))
            #expect(newest.map(\.id.value) == [3, 1])
            let tombstones = try await database.run(
                OplogStore.tombstones(of: channel, after: .zero, upto: OplogID(9), limit: 10))
            #expect(tombstones.map(\.id.value) == [4])
            let again = try await database.append([Self.push("u", "b"), Self.push("u", "d")])
            #expect(again.map(\.oplogID.value) == [2, 6] && again.map(\.isDuplicate) == [true, false])
            let unknown = try await database.runAsOperator(
                OplogStore.recall(Self.address("u"), ThirdMessageID("never")))
            #expect(unknown == nil)
            let found = try await database.runAsOperator(
                TraceStore.find(
                    TraceStore.Name(
                        instanceID: InstanceID("app"), bizType: BizType("B"), target: "u",
                        key: .thirdMessageID(ThirdMessageID("b")))))
            #expect(found?.oplog.id == OplogID(2) && found?.recalledAt != nil && found?.oplog.isPersistent == true)
        }
    }
}
