import AMQP
import BusMessages
import Logging
import PostgreSQL
import ServiceKit
import SwiftProtobuf
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import OplogWriter

/// Non-persistent pushes and pages of a backlog in PostgreSQL (findings A6, A10, A13).
@Suite(
    "Non-persistent pushes and backlogs in PostgreSQL",
    .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct LivePushStoreTests {
    private static func push(_ key: String, _ bizType: String = "LIVE") -> OplogStore.Append { .toUser(key, bizType) }

    private static func configuration(_ bizType: String, isPersistent: Bool) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: InstanceID("app"), bizType: BizType(bizType), description: "", kind: .user,
            isMultiDevice: true, isPersistent: isPersistent, repush: .all, checksSession: false, isOnline: true)
    }

    private static func with(_ body: @Sendable (TestDatabase) async throws -> Void) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure([
                configuration("LIVE", isPersistent: false), configuration("B", isPersistent: true),
            ])
            try await body(databases[0])
        }
    }

    @Test("H4: a repeat is sent under the first id until the outcome is recorded; then it is only a duplicate")
    func outcomes() async throws {
        try await Self.with { database in
            let first = try await database.append([Self.push("a")])[0]
            #expect(first.awaitsOutcome && !first.isDuplicate && !first.isPersistent)
            let again = try await database.append([Self.push("b"), Self.push("a")])
            #expect(again.map(\.awaitsOutcome) == [true, true] && again.map(\.isDuplicate) == [false, true])
            #expect(again[1].oplogID == first.oplogID)
            try await database.run(OplogStore.recordOutcomes(of: [again[1].livePush]))
            let last = try await database.append([Self.push("a"), Self.push("b")])
            #expect(last.map(\.awaitsOutcome) == [false, true] && last.map(\.isDuplicate) == [true, true])
            let stored = try await database.append([Self.push("a", "B"), Self.push("a", "B")])
            #expect(stored.map(\.awaitsOutcome) == [false, false])
        }
    }

    @Test("H7: a recalled push is not sent again") func recalled() async throws {
        try await Self.with { database in
            let first = try await database.append([Self.push("a")])[0]
            try await database.execute("UPDATE oplog SET recalled_at = now() WHERE oplog_id = \(first.oplogID.value)")
            #expect(try await database.append([Self.push("a")])[0].awaitsOutcome == false)
            #expect(
                try await database.run(OplogStore.page(of: first.channelID, after: .zero, limit: 9)).isEmpty)
        }
    }

    @Test("H4: a page names non-persistent pushes whose notices may be in transit, and carries the time")
    func pages() async throws {
        try await Self.with { database in
            let appended = try await database.append(["a", "b", "c"].map { Self.push($0) })
            let channel = appended[0].channelID
            @Sendable func page() async throws -> ChannelPage {
                let read = PageRead(channelID: channel, after: .zero, start: .zero, limit: 9, owner: nil)
                return try await database.asDelivery { try $0.pages([read])[0].get() }
            }
            let found = try await page()
            #expect(found.entries.map(\.id.value) == [1, 2, 3])
            #expect(found.entries.allSatisfy { !$0.isPersistent && $0.payload.isEmpty })
            #expect(found.databaseTime >= appended[0].createdAt)
            try await database.run(OplogStore.recordOutcomes(of: [appended[1].livePush]))
            #expect(try await page().entries.map(\.id.value) == [1, 3])
            try await database.execute("UPDATE oplog SET created_at = created_at - interval '3 s' WHERE oplog_id = 1")
            #expect(try await page().entries.map(\.id.value) == [3], "a session waits 2 s for a notice")
        }
    }

    @Test("D10: a threshold counts up to the head of the opening: later oplogs are never discarded")
    func backlog() async throws {
        try await Self.with { database in
            let pushes = (1...20).map { Self.push("\($0)", "B") }
            let channel = try await database.append(pushes)[0].channelID
            let bus = MessageBus(
                configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "", password: ""),
                consumptions: [], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            for (upto, start) in [(Int64(0), Int64(15)), (10, 5), (5, 0), (4, 0), (20, 15)] {
                let request = Mss_Bus_V1_ReadPage.with {
                    $0.channelID = channel
                    $0.newest = 5
                    $0.newestUpto = upto
                }
                let found = try await database.asDelivery { try PageHandler(bus: bus).start(of: request, in: $0) }
                #expect(found == OplogID(start), "up to \(upto)")
            }
        }
    }

    @Test("D11: replies to leases and registrations carry the database's time") func time() async throws {
        try await Self.with { database in
            let before = try await database.run(DatabaseTime.now)
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            let after = try await database.run(DatabaseTime.now)
            let told = try #require(lease.databaseTime)
            #expect(before <= told && told <= after)
        }
    }
}
