import BusMessages
import Foundation
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import AMQP
@testable import OplogWriter

@Suite(
    "Operators' actions on pushes and devices", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct PersonRecordTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    /// Without a broker: replies are dropped, and changes are in the database.
    private static let work = BackendQueryHandler(
        bus: MessageBus(
            configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "", password: ""), consumptions: [],
            logger: logger), stores: .single, logger: logger)

    /// Executes commands as the store worker for backend queries does.
    private static func perform<Work: CommandHandler>(
        _ commands: [Mss_Bus_V1_OperationCommand], on database: TestDatabase, by work: Work = work
    ) async throws where Work.Command == Mss_Bus_V1_OperationCommand {
        try await database.executeAsWriter("SET ROLE mss_operator")
        try await database.asWriter { connection in
            let delivery = AMQPDelivery(
                body: [], isRedelivered: false, replyTo: "r", receivedAt: .now, exchange: "", generation: 0,
                deliveryTag: 1)
            work.perform([StoreTask(body: CommandBody(delivery), replyTo: "r", commands: commands)], on: connection)
        }
        try await database.executeAsWriter("RESET mss.instance; SET ROLE mss_writer")
    }

    private static let name = Mss_Bus_V1_OplogName.with {
        $0.instanceID = "app"
        $0.bizType = "B"
        $0.linkToken = "u"
        $0.thirdMessageID = "m"
    }

    private static func push(_ id: String, payload: String = "CANARY") -> OplogStore.Append {
        let target = TargetAddress(instanceID: InstanceID("app"), kind: .user, target: "u")
        return OplogStore.Append(
            address: ChannelAddress(target: target, bizType: BizType("B")),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(id), payload: Array(payload.utf8), isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true))
    }

    /// Runs the body with a database that has an instance, a dead letter on device d, and a session of that device.
    private static func with(_ body: @Sendable (TestDatabase) async throws -> Void) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let pushed = try await database.append([push("m"), push("n")])
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            let session = DeviceSessionStore.Registration(
                gatewayID: "g", gatewayEpoch: lease.epoch, instanceID: InstanceID("app"), deviceID: DeviceID("d"),
                storeID: StoreID("s"), userID: UserID("u"),
                traits: DeviceTraits(operatingSystem: nil, appVersion: "1", slot: DeviceSlot(number: 0)),
                isForeground: true, connectionNumber: 1, registrationNumber: 1,
                connectionEpoch: 0,
                takesOwnership: true, verdictMilliseconds: 0, suspended: [])
            _ = try await database.run(DeviceSessionStore.register(session))
            try await database.execute(
                """
                INSERT INTO statistics_delivery (channel_id, oplog_id, device_id, attempts, dead_at,
                    dead_user, operating_system, app_version)
                VALUES (\(pushed[0].channelID), \(pushed[0].oplogID.value), 'd', 7, now(), 'u', 0, '')
                """)
            try await body(database)
        }
    }

    private static func commands(by actor: OperationActor) -> [Mss_Bus_V1_OperationCommand] {
        var commands = [Mss_Bus_V1_OperationCommand](repeating: .with { $0.by = actor }, count: 4)
        commands[0].replay.oplog = name
        commands[0].replay.deviceID = "d"
        commands[1].recall = name
        commands[2].revokeSessions.instanceID = "app"
        commands[2].revokeSessions.userID = "u"
        commands[2].revokeSessions.sessionDigest = Data([0xab])
        commands[3].disconnect.instanceID = "app"
        commands[3].disconnect.deviceID = "d"
        return commands
    }

    private static func records(_ database: TestDatabase) async throws -> [OperationRecord] {
        let all = try await database.run(RecordStore.oldest(after: 0, limit: 200)).records
        return all.filter { $0.actor != "test" }
    }

    @Test("C9: an operator's replay, recall, revocation and disconnection are recorded with the change, once")
    func people() async throws {
        try await Self.with { database in
            let alice = OperationActor("console:alice", from: "192.0.2.1")
            try await Self.perform(Self.commands(by: alice), on: database)
            let records = try await Self.records(database)
            #expect(records.map(\.action) == [.replay, .recall, .revokeSessions, .disconnectDevice])
            #expect(records.allSatisfy { $0.actor == alice.name && $0.source == alice.source })
            #expect(records.allSatisfy { $0.instanceID.text == "app" })
            #expect(records.map(\.subject) == ["B", "B", "u", "d"])
            #expect(records[0].after == #"{"target": "u", "oplogId": 1, "deviceId": "d"}"#)
            #expect(records[1].after == #"{"target": "u", "oplogId": 1, "thirdMsgId": "m"}"#)
            #expect(records[2].after == #"{"sessionDigest": "ab"}"#)
            // The dead letter no longer exists, and the second recall changes nothing.
            try await Self.perform(Array(Self.commands(by: alice).prefix(2)), on: database)
            #expect(try await Self.records(database).count == 4)
        }
    }

    @Test("C9: calls of backends are not recorded") func backends() async throws {
        try await Self.with { database in
            try await Self.perform(Self.commands(by: "api"), on: database)
            #expect(try await Self.records(database).isEmpty)
            #expect(try await database.rows("SELECT count(*)::text FROM session_revocation", columns: 1) == [["1"]])
        }
    }

    @Test("SEC10: the queue of backends accepts no operator's request, and none in an operator's name")
    func doors() async throws {
        try await Self.with { database in
            var commands = Self.commands(by: "console:mallory")
            commands += Self.commands(by: "api")
            commands.append(
                .with {
                    $0.actor = "api"
                    $0.recordPush.oplog = Self.name
                })
            let passed = commands.filter(BackendCommandHandler.isAllowed)
            #expect(passed.map(\.actor) == ["api", "api"])
            #expect(
                passed.compactMap(\.body) == [Self.commands(by: "api")[1], Self.commands(by: "api")[2]].map(\.body))
            var trace = Mss_Bus_V1_OperationCommand.with {
                $0.actor = "api"
                $0.trace.oplog = Self.name
            }
            #expect(BackendCommandHandler.isAllowed(trace))
            trace.trace.withPayload = true
            #expect(!BackendCommandHandler.isAllowed(trace), "only operators read payloads")
            try await Self.perform(commands, on: database, by: BackendCommandHandler(operations: Self.work))
            #expect(try await Self.records(database).isEmpty)
            #expect(try await database.rows("SELECT count(*)::text FROM reread", columns: 1) == [["0"]])
            #expect(try await database.rows("SELECT count(*)::text FROM session_revocation", columns: 1) == [["1"]])
        }
    }

    @Test("C9: an operator's push is recorded without its payload") func push() async throws {
        try await Self.with { database in
            let push = Mss_Bus_V1_RecordPush.with {
                $0.oplog = Self.name
                $0.payload = Data([1, 2])
                $0.operatingSystem = .android
                $0.minimumVersion = "1.2"
                $0.validUntilMs = 5
            }
            let command = Mss_Bus_V1_OperationCommand.with {
                $0.actor = "mssctl:root"
                $0.recordPush = push
            }
            try await Self.perform([command, command], on: database)
            let records = try await Self.records(database)
            #expect(records.map(\.action) == [.createSync, .createSync] && records[0].subject == "B")
            #expect(
                records[0].after == #"""
                    {"osType": "Android", "target": "u", "thirdMsgId": "m", "validTimeEnd": 5, \#
                    "appMinVersion": "1.2", "payloadSha256": \#
                    "a12871fee210fb8619291eaea194581cbd2531e4b23759d225f6806923f63222"}
                    """#)
        }
    }

    @Test("C7: a trace has the payload when it is requested and still stored") func payload() async throws {
        try await Self.with { database in
            let channel = Int64(1)
            func payload(_ id: Int64) async throws -> [UInt8]? {
                try await database.runAsOperator(TraceStore.payload(channelID: channel, oplogID: OplogID(id)))
            }
            #expect(try await payload(2) == Array("CANARY".utf8))
            #expect(try await payload(3) == nil)
            try await Self.perform([Self.commands(by: "mssctl:root")[1]], on: database)
            #expect(try await payload(1) == nil, "recalled")
            try await database.execute("UPDATE oplog SET valid_until = now() WHERE oplog_id = 2")
            #expect(try await payload(2) == nil, "expired")
        }
    }

    @Test("C7: a device is shown with its connection time and the state of its channels, the last moved first")
    func device() async throws {
        try await Self.with { database in
            let (app, device) = (InstanceID("app"), DeviceID("d"))
            for (bizType, kind) in [("DEV", SyncModel.ChannelKind.device), ("ALL", .globalUser)] {
                let configuration = SyncConfiguration(
                    instanceID: app, bizType: BizType(bizType), description: "", kind: kind,
                    isMultiDevice: kind.needsUser, isPersistent: true, repush: .all, checksSession: false,
                    isOnline: true)
                _ = try await database.run(ControlStore.create(configuration, by: "test"))
                let target = TargetAddress(
                    instanceID: app, kind: kind, target: kind.isGlobal ? "" : "d")
                var push = Self.push(bizType)
                push.address = ChannelAddress(target: target, bizType: BizType(bizType))
                _ = try await database.append([push])
            }
            try await database.execute(
                """
                INSERT INTO sync_point (channel_id, device_id, store_id, oplog_id)
                VALUES (1, 'd', 's', 1), (1, 'other', 's', 2), (2, '', '', 1)
                """)
            let row = try #require(
                try await database.runAsOperator(ConnectedDeviceStore.device(device, of: app)))
            #expect(abs(row.since.milliseconds - WallTime.now.milliseconds) < 60_000 && row.isOwner)
            func channels(_ device: DeviceID, user: UserID?, isConnected: Bool) async throws -> [String] {
                try await database.runAsOperator(
                    ConnectedDeviceStore.channels(of: device, app, userID: user, isConnected: isConnected)
                ).map { "\($0.bizType) \($0.syncPoint.value)/\($0.head.value)" }
            }
            #expect(
                try await channels(device, user: UserID("u"), isConnected: true) == ["ALL 0/1", "DEV 1/1", "B 1/2"])
            #expect(try await channels(device, user: nil, isConnected: false) == ["DEV 1/1"])
            #expect(try await channels(DeviceID("never"), user: nil, isConnected: false).isEmpty)
            _ = try await database.run(
                ControlStore.put(
                    SyncConfiguration(
                        instanceID: app, bizType: BizType("B"), description: "", kind: .user, isMultiDevice: false,
                        isPersistent: true, repush: .all, checksSession: false, isOnline: true), by: "test"))
            #expect(
                try await channels(device, user: UserID("u"), isConnected: true).contains("B 2/2"),
                "one sync point for all devices of the user")
        }
    }

    @Test("C1: a repeated registration keeps the connection time") func since() async throws {
        try await Self.with { database in
            let registered =
                "SELECT registered_at::text, connection_epoch::text, gateway_epoch::text FROM device_session"
            let before = try await database.rows(registered, columns: 3)[0]
            func register(number: UInt64, epoch: Int64) -> Query<DeviceSessionStore.Registered> {
                DeviceSessionStore.register(
                    DeviceSessionStore.Registration(
                        gatewayID: "g", gatewayEpoch: Int64(before[2] ?? "") ?? 0, instanceID: InstanceID("app"),
                        deviceID: DeviceID("d"), storeID: StoreID("s"), userID: UserID("u"),
                        traits: DeviceTraits(operatingSystem: nil, appVersion: "1", slot: DeviceSlot(number: 0)),
                        isForeground: true,
                        connectionNumber: number, registrationNumber: number, connectionEpoch: epoch,
                        takesOwnership: false, verdictMilliseconds: 0,
                        suspended: []))
            }
            _ = try await database.run(register(number: 1, epoch: Int64(before[1] ?? "") ?? 0))
            #expect(try await database.rows(registered, columns: 3)[0][0] == before[0])
            _ = try await database.run(register(number: 2, epoch: 0))
            #expect(try await database.rows(registered, columns: 3)[0][0] != before[0])
        }
    }
}
