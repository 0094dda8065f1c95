import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

// One after the other, because a server that creates databases for every test at once is slow.
@Suite(
    "History and summaries in PostgreSQL", .serialized,
    .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct HistoryStoreTests {
    private static func push(
        _ key: String, to user: String = "u", targeting: Targeting = .everyone, validUntil: Int64 = 0,
        conversation: String = ""
    ) -> OplogStore.Append {
        OplogStore.Append(
            address: ChannelAddress(
                target: TargetAddress(instanceID: InstanceID("app"), kind: .user, target: user), bizType: BizType("B")),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: Array(key.utf8), isBinary: false,
                targeting: targeting, validUntil: WallTime(milliseconds: validUntil),
                createdAt: WallTime(milliseconds: 0), isPersistent: true, conversation: conversation))
    }

    private static func candidates(
        _ channel: Int64, _ conversation: String = "", after: Int64 = 0, before: Int64 = .max,
        oldestFirst: Bool = false, limit: Int = 100
    ) -> Query<[HistoryStore.Candidate]> {
        HistoryStore.candidates(
            of: channel, conversation, after: OplogID(after), before: OplogID(before), oldestFirst: oldestFirst,
            limit: limit)
    }

    @Test("a range is open at both ends and is returned in the requested order, up to the requested length")
    func ranges() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let channel = try await database.append((1...9).map { Self.push("k\($0)") })[0].channelID
            _ = try await database.append([Self.push("other", to: "v")])
            func ids(_ query: Query<[HistoryStore.Candidate]>) async throws -> [Int64] {
                try await database.run(query).map(\.id.value)
            }
            #expect(try await ids(Self.candidates(channel)) == Array((1...9).reversed()))
            #expect(try await ids(Self.candidates(channel, after: 3, before: 7)) == [6, 5, 4])
            #expect(try await ids(Self.candidates(channel, after: 3, before: 7, oldestFirst: true)) == [4, 5, 6])
            #expect(try await ids(Self.candidates(channel, oldestFirst: true, limit: 2)) == [1, 2])
            #expect(try await ids(Self.candidates(channel, before: 5, limit: 2)) == [4, 3])
            #expect(try await ids(Self.candidates(channel, after: 4, before: 5)) == [])
        }
    }

    @Test("expired, non-persistent, recalled and deleted oplogs and tombstones are not offered")
    func notOffered() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let (app, bizType) = (InstanceID("app"), BizType("B"))
            let old = try await database.append([Self.push("old")])
            _ = try await database.run(ControlStore.setOnline(false, app, bizType, by: "test"))
            _ = try await database.run(ControlStore.delete(app, bizType, by: "test"))
            try await database.configure()
            let stored = try await database.append([
                Self.push("2"), Self.push("expired", validUntil: 1_000), Self.push("not persistent"),
                Self.push("recalled"),
                Self.push("six", targeting: Targeting(operatingSystem: .android, minimumVersion: "2")),
            ])
            let channel = old[0].channelID
            try await database.execute("UPDATE oplog SET payload = NULL WHERE oplog_id = 4")
            let recalled = OplogStore.recall(Self.push("").address, ThirdMessageID("recalled"))
            #expect(try await database.runAsOperator(recalled)?.tombstone.id == OplogID(7))
            #expect(stored.map(\.oplogID.value) == [2, 3, 4, 5, 6])
            let candidates = try await database.run(Self.candidates(channel, oldestFirst: true))
            #expect(candidates.map(\.id.value) == Array(1...7), "all are looked at")
            #expect(candidates.filter(\.isOffered).map(\.id.value) == [2, 6])
            let last = candidates.filter(\.isOffered).last
            #expect(last?.payloadBytes == 3 && last?.targeting.operatingSystem == .android)
            // The chosen oplogs are checked again when they are read.
            let oplogs = try await database.run(
                HistoryStore.oplogs(of: channel, ids: candidates.map(\.id).reversed()))
            #expect(oplogs.map(\.id.value) == [6, 2] && oplogs.map(\.payload) == [Array("six".utf8), Array("2".utf8)])
        }
    }

    @Test("a page of 20 reads no more rows of 10,000 than of 2,000, in either direction, and at most 1,001")
    func costs() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let channel = try await database.append([Self.push("first")])[0].channelID
            func reads(upto head: Int64) async throws -> [Int] {
                var reads: [Int] = []
                let ids = try await database.run(Self.candidates(channel, limit: 20)).map(\.id)
                let place = HistoryStore.Place(
                    channelID: channel, deviceID: nil, storeID: nil, stored: .zero, onlyOwner: nil)
                for statement in [
                    Self.candidates(channel, limit: 21).statement,
                    Self.candidates(channel, oldestFirst: true, limit: 21).statement,
                    Self.candidates(channel, after: 100, before: head - 100, limit: 21).statement,
                    Self.candidates(channel, limit: 1_001).statement,
                    HistoryStore.oplogs(of: channel, ids: ids).statement,
                    HistoryStore.states(of: [place]).statement,
                ] { reads.append(try await database.oplogsRead(by: statement)) }
                return reads
            }
            try await database.fill(channel, from: 2, to: 2_000)
            let few = try await reads(upto: 2_000)
            // Rows that no rule lets through are read no further than the rows that are shown.
            try await database.fill(channel, from: 2_001, to: 10_000, validity: "-1 day")
            let many = try await reads(upto: 10_000)
            #expect(zip(few, [21, 21, 21, 1_001, 20, 1_000]).allSatisfy { $0 <= $1 + 6 }, "\(few)")
            #expect(zip(few, many).allSatisfy { $1 <= $0 + 6 }, "\(few) and \(many): one more for each partition")
        }
    }

    @Test("D19: the oplogs of one conversation, and the conversations in byte order with the counts above a position")
    func conversations() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let android = Targeting(operatingSystem: .android)
            let stored = try await database.append([
                Self.push("1", conversation: "chat"), Self.push("2", conversation: "Case"), Self.push("3"),
                Self.push("4", conversation: "chat"), Self.push("5", targeting: android, conversation: "chat"),
                Self.push("6", validUntil: 1_000, conversation: "ended"), Self.push("7", conversation: "É"),
                // The same letters in other bytes.
                Self.push("8", conversation: "E\u{301}"),
            ])
            let channel = stored[0].channelID
            _ = try await database.append([Self.push("other", to: "v", conversation: "other")])
            func ids(_ query: Query<[HistoryStore.Candidate]>) async throws -> [Int64] {
                try await database.run(query).map(\.id.value)
            }
            #expect(try await ids(Self.candidates(channel, "chat")) == [5, 4, 1])
            #expect(try await ids(Self.candidates(channel, "chat", after: 1, before: 5)) == [4])
            #expect(try await ids(Self.candidates(channel, "cha")) == [])
            let read = try await database.run(HistoryStore.oplogs(of: channel, ids: [OplogID(1), OplogID(3)]))
            #expect(read.map(\.conversation) == ["chat", ""])
            let page = try await database.run(OplogStore.page(of: channel, after: .zero, limit: 2))
            #expect(page.map(\.conversation) == ["chat", "Case"])
            func conversations(
                after name: String = "", above position: Int64 = 0, limit: Int = 10
            ) async throws -> [HistoryStore.Conversation] {
                try await database.run(
                    HistoryStore.conversations(
                        of: channel, after: name, above: OplogID(position), limit: limit))
            }
            let all = try await conversations()
            #expect(
                all.map { Array($0.name.utf8) } == ["Case", "E\u{301}", "chat", "ended", "É"].map { Array($0.utf8) })
            #expect(all.map { $0.waiting.values.reduce(0, +) } == [1, 1, 3, 0, 1])
            #expect(all[2].waiting == [.everyone: 2, android: 1])
            #expect(try await conversations(after: "E\u{301}", limit: 1).map(\.name) == ["chat"])
            let rest = try await conversations(after: "chat", above: 6)
            #expect(rest.map(\.name) == ["ended", "É"] && rest[1].waiting == [.everyone: 1])
            #expect(try await conversations(above: 4)[2].waiting == [android: 1])
            #expect(try await conversations(after: "É").isEmpty)
        }
    }

    @Test("D19: a conversation is found by its index, however many oplogs the channel and other conversations have")
    func costOfConversations() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let channel = try await database.append([Self.push("first")])[0].channelID
            try await database.fill(channel, from: 2, to: 10_000)
            try await database.execute(
                """
                UPDATE oplog SET conversation = CASE WHEN oplog_id % 1000 = 0 THEN 'rare' ELSE 'many' END
                WHERE oplog_id % 2 = 0;
                ANALYZE oplog
                """)
            let page = try await database.oplogsRead(by: Self.candidates(channel, "rare", limit: 21).statement)
            let names = HistoryStore.conversations(of: channel, after: "", above: OplogID(9_990), limit: 17)
            let listed = try await database.oplogsRead(by: names.statement)
            #expect(page <= 10 + 6 && listed <= 30, "\(page) and \(listed) rows")
            #expect(try await database.run(names).map(\.name) == ["many", "rare"])
        }
    }

    @Test("a summary has the head, the receiver's own sync point or the highest of all, and the backlog above it")
    func states() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let android = Targeting(operatingSystem: .android)
            let channel = try await database.append(
                (1...5).map { Self.push("\($0)") } + [Self.push("6", targeting: android)])[0].channelID
            let other = try await database.append([Self.push("1", to: "v")])[0].channelID
            try await database.run(
                SyncPointStore.advance([
                    .init(channelID: channel, deviceID: "d", storeID: "s", upto: OplogID(2)),
                    .init(channelID: channel, deviceID: "d", storeID: "old", upto: OplogID(3)),
                    .init(channelID: channel, deviceID: "e", storeID: "s", upto: OplogID(5)),
                ]))
            func state(
                _ channel: Int64, _ device: String? = nil, stored: Int64 = 0, owner: String? = nil
            ) async throws -> HistoryStore.ReceiverState {
                let place = HistoryStore.Place(
                    channelID: channel, deviceID: device.map { DeviceID($0) },
                    storeID: device.map { _ in StoreID("s") },
                    stored: OplogID(stored), onlyOwner: owner.map { DeviceID($0) })
                // Between two others, so that the order of the answers is checked.
                let unknown = HistoryStore.Place(
                    channelID: 99, deviceID: nil, storeID: nil, stored: .zero, onlyOwner: nil)
                let states = try await database.run(HistoryStore.states(of: [unknown, place, unknown]))
                #expect(states.map(\.head.value) == [0, states[1].head.value, 0])
                return states[1]
            }
            let own = try await state(channel, "d")
            #expect(own.head == OplogID(6) && own.syncPoint == OplogID(2) && own.waiting == [.everyone: 3, android: 1])
            let acknowledged = try await state(channel, "d", stored: 4)
            #expect(acknowledged.syncPoint == OplogID(4) && acknowledged.waiting == [.everyone: 1, android: 1])
            #expect(try await state(channel, "new").syncPoint == .zero)
            let shared = try await state(channel)
            #expect(shared.syncPoint == OplogID(5) && shared.waiting == [android: 1])
            #expect(try await state(other, "d").waiting == [.everyone: 1])
            // The user has no owner, then the device, then another device.
            #expect(try await state(channel, owner: "d").isForAnother)
            try await database.execute("INSERT INTO owner VALUES ('app', 'u', 'd', 1)")
            #expect(try await state(channel, owner: "d").isForAnother == false)
            #expect(try await state(channel, owner: "e").isForAnother)
            try await database.fill(other, from: 2, to: 1_500)
            #expect(try await state(other).waiting == [.everyone: 1_000], "counted no further")
        }
    }
}
