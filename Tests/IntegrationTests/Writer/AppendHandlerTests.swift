import Logging
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import AMQP
@testable import BusMessages
@testable import OplogWriter

@Suite("Appends of a store worker", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct AppendHandlerTests {
    /// There is no broker: the test checks the database.
    private static let bus = MessageBus(
        configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "", password: ""), consumptions: [],
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })

    private static func task(_ pushes: [(user: String, key: String)]) -> StoreTask<Mss_Bus_V1_AppendCommand> {
        let commands = pushes.map { push in
            Mss_Bus_V1_AppendCommand.with {
                $0.target =
                    TargetAddress(instanceID: InstanceID("app"), kind: .user, target: push.user).bus
                $0.bizType = "B"
                $0.oplog =
                    Oplog(
                        id: .zero, thirdMessageID: ThirdMessageID(push.key), payload: [1], isBinary: false,
                        targeting: Targeting(), validUntil: WallTime(milliseconds: 0),
                        createdAt: WallTime(milliseconds: 0), isPersistent: true
                    ).bus
            }
        }
        let delivery = AMQPDelivery(
            body: [], isRedelivered: false, replyTo: "r", receivedAt: .now, exchange: "", generation: 0,
            deliveryTag: 1)
        return StoreTask(body: CommandBody(delivery), replyTo: "r", commands: commands)
    }

    @Test("D2: a locked channel keeps its order and does not delay other channels")
    func lockedChannel() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (holder, database) = (databases[0], databases[1])
            try await database.configure()
            let work = AppendHandler(bus: Self.bus) { _, completion in completion() }
            func perform(_ pushes: [(user: String, key: String)]) async throws {
                let task = Self.task(pushes)
                try await database.asWriter { work.perform([task], on: $0) }
            }
            func stored(of user: String) async throws -> [String?] {
                try await database.rows(
                    """
                    SELECT third_message_id FROM oplog JOIN channel USING (channel_id) WHERE target = '\(user)'
                    ORDER BY oplog_id
                    """, columns: 1
                ).map { $0[0] }
            }
            try await perform([("u", "0")])
            try await holder.execute("BEGIN; UPDATE channel SET head = head WHERE target = 'u'")
            try await perform([("u", "1"), ("v", "1"), ("u", "2"), ("w", "1")])
            #expect(try await stored(of: "v") == ["1"])
            #expect(try await stored(of: "w") == ["1"])
            try await holder.execute("ROLLBACK")
            #expect(try await stored(of: "u") == ["0"], "neither is stored before the other is repeated")
            try await perform([("u", "1"), ("u", "2")])
            #expect(try await stored(of: "u") == ["0", "1", "2"])
        }
    }
}
