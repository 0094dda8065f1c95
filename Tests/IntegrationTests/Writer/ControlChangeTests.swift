import BusMessages
import Credentials
import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Changes of control data", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct ControlChangeTests {
    private static let instance = Instance(
        id: InstanceID("app"), name: "one", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
    private static let configuration = SyncConfiguration(
        instanceID: instance.id, bizType: BizType("B"), description: "one", kind: .user, isMultiDevice: true,
        isPersistent: true, repush: .threshold(100), checksSession: false, isOnline: true)

    private static func records(_ database: TestDatabase) async throws -> [OperationRecord] {
        try await database.run(RecordStore.oldest(after: 0, limit: 200)).records
    }

    /// Makes changes one after the other. Returns the recorded action of each.
    private static func actions(
        _ database: TestDatabase, _ changes: [ControlStore.Change]
    ) async throws -> [OperationAction?] {
        let before = try await records(database).count
        for change in changes { _ = try await database.run(change) }
        return try await records(database).dropFirst(before).map(\.action)
    }

    private static func change<Value>(_ value: Value, _ edit: (inout Value) -> Void) -> Value {
        var value = value
        edit(&value)
        return value
    }

    @Test("C13: an instance is created once; of two changes of the same revision, the second is refused as stale")
    func instanceRevisions() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let modify: (Instance) -> ControlStore.Change = { ControlStore.modify($0, by: "mssctl:root") }
            #expect(try await database.run(modify(Self.instance)) == .refused, "there is none")
            let created = try await database.run(ControlStore.create(Self.instance, by: "mssctl:root"))
            #expect(created == .made(version: 2))
            #expect(try await database.run(ControlStore.create(Self.instance, by: "mssctl:root")) == .refused)
            let held = try #require(try await database.run(ControlStore.instance(Self.instance.id)))
            #expect(held.revision == 1)
            let first = Self.change(held) { $0.name = "first" }
            #expect(try await database.run(modify(first)) == .made(version: 3))
            #expect(try await database.run(modify(Self.change(held) { $0.name = "second" })) == .stale)
            #expect(try await database.run(modify(first)) == .unchanged(version: 3), "a repeat meets its own effect")
            let now = try #require(try await database.run(ControlStore.instance(Self.instance.id)))
            #expect(now.name == "first" && now.revision == 2)
            #expect(try await database.run(ControlStore.put(Self.instance, by: "mssctl:root")) == .made(version: 4))
        }
    }

    @Test("C4: the same for a configuration; another target is refused, not stale")
    func configurationRevisions() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            #expect(try await database.run(ControlStore.create(Self.configuration, by: "m")) == .refused, "no instance")
            _ = try await database.run(ControlStore.create(Self.instance, by: "m"))
            #expect(try await database.run(ControlStore.modify(Self.configuration, by: "m")) == .refused)
            #expect(try await database.run(ControlStore.create(Self.configuration, by: "m")) == .made(version: 3))
            #expect(try await database.run(ControlStore.create(Self.configuration, by: "m")) == .refused)
            let held = Self.change(Self.configuration) { $0.revision = 1 }
            let other = Self.change(held) { ($0.kind, $0.isMultiDevice) = (.device, false) }
            #expect(try await database.run(ControlStore.modify(other, by: "m")) == .refused)
            #expect(try await database.run(ControlStore.put(other, by: "m")) == .refused)
            let first = Self.change(held) { $0.description = "first" }
            #expect(try await database.run(ControlStore.modify(first, by: "m")) == .made(version: 4))
            let second = Self.change(held) { $0.description = "second" }
            #expect(try await database.run(ControlStore.modify(second, by: "m")) == .stale)
            #expect(try await database.run(ControlStore.modify(first, by: "m")) == .unchanged(version: 4))
            // Switches do not check the revision.
            let (id, bizType) = (Self.instance.id, Self.configuration.bizType)
            #expect(try await database.run(ControlStore.setOnline(false, id, bizType, by: "m")) == .made(version: 5))
            #expect(
                try await database.run(ControlStore.setOnline(false, id, bizType, by: "m")) == .unchanged(version: 5))
            #expect(try await database.run(ControlStore.setOnline(true, id, BizType("C"), by: "m")) == .refused)
        }
    }

    @Test("C4: the push scope can be changed, and is recorded with the value before; stored data keeps its channel")
    func scope() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            _ = try await database.run(ControlStore.create(Self.instance, by: "m"))
            _ = try await database.run(ControlStore.create(Self.configuration, by: "m"))
            let (id, bizType) = (Self.instance.id, Self.configuration.bizType)
            func push(_ key: String, _ kind: SyncModel.ChannelKind) -> OplogStore.Append {
                OplogStore.Append(
                    address: ChannelAddress(
                        target: TargetAddress(instanceID: id, kind: kind, target: kind.isGlobal ? "" : "u"),
                        bizType: bizType),
                    oplog: Oplog(
                        id: .zero, thirdMessageID: ThirdMessageID(key), payload: [1], isBinary: false,
                        targeting: Targeting(), validUntil: WallTime(milliseconds: 0),
                        createdAt: WallTime(milliseconds: 0), isPersistent: true))
            }
            func find(_ key: String, to target: String) async throws -> TraceStore.Found? {
                let name = TraceStore.Name(
                    instanceID: id, bizType: bizType, target: target, key: .thirdMessageID(ThirdMessageID(key)))
                return try await database.run(TraceStore.find(name))
            }
            func change(to kind: SyncModel.ChannelKind) async throws {
                let held = try #require(try await database.run(ControlStore.configuration(id, bizType)))
                let changed = try #require(held.scoped(to: kind))
                let outcome = try await database.run(ControlStore.modify(changed, by: "m"))
                #expect(outcome.version != nil)
                #expect(try await database.run(ControlStore.configuration(id, bizType))?.kind == kind)
            }
            let first = try await database.append([push("own", .user)])[0]
            try await change(to: .globalUser)
            #expect(try await database.run(OplogStore.page(of: first.channelID, after: .zero, limit: 9)).count == 1)
            let second = try await database.append([push("all", .globalUser), push("own", .globalUser)])
            #expect(second.map(\.channelID).allSatisfy { $0 != first.channelID })
            #expect(try await find("all", to: "")?.target.kind == .globalUser)
            #expect(try await find("own", to: "u")?.target.kind == .globalUser, "the present scope is searched first")
            try await change(to: .user)
            #expect(try await database.run(OplogStore.page(of: second[0].channelID, after: .zero, limit: 9)).count == 2)
            let own = try await find("own", to: "u")
            #expect(own?.target.kind == .user && own?.isOfConfiguration == true)
            let all = try await find("all", to: "")
            #expect(all?.target.kind == .globalUser && all?.isOfConfiguration == true)
            #expect(try await find("all", to: "u") == nil, "a push that names a user is no global push")
            let records = try await Self.records(database)
            #expect(records.suffix(2).allSatisfy { $0.action == .modifyConfiguration })
            #expect(records.last?.before?.contains(#""scope": "global""#) == true)
            #expect(records.last?.after?.contains(#""scope": "appointed""#) == true)
        }
    }

    @Test("C4: of many concurrent changes of the same revision one succeeds, and the record has the value before it")
    func racingEditors() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            _ = try await databases[0].run(ControlStore.create(Self.instance, by: "m"))
            for round in 1...10 {
                let outcomes = try await withThrowingTaskGroup(of: ControlOutcome.self) { group in
                    for (editor, database) in databases.enumerated() {
                        let mine = Self.change(Self.instance) {
                            $0.name = "\(round) \(editor)"
                            $0.revision = round
                        }
                        group.addTask { try await database.run(ControlStore.modify(mine, by: "m")) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(outcomes.count { $0.version != nil } == 1 && outcomes.count { $0 == .stale } == 3)
            }
            let records = try await Self.records(databases[0])
            #expect(records.count == 11)
            for (one, next) in zip(records, records.dropFirst()) { #expect(one.after == next.before) }
        }
    }

    @Test("C9: each change is recorded under its own name; a request without an effect is no change")
    func actions() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let (database, one) = (databases[0], Self.instance)
            func put(_ edit: (inout Instance) -> Void) -> ControlStore.Change {
                ControlStore.put(Self.change(one, edit), by: "mssctl:root")
            }
            let instances = try await Self.actions(
                database,
                [
                    put { _ in }, put { _ in }, put { $0.requiresSignature = true }, put { _ in },
                    put { $0.isEnabled = false }, put { _ in },
                    put {
                        $0.isEnabled = false
                        $0.requiresSignature = true
                    },
                ])
            #expect(
                instances == [
                    .createInstance, .enableSignature, .disableSignature, .disableInstance, .enableInstance,
                    .modifyInstance,
                ])
            let (id, bizType) = (one.id, Self.configuration.bizType)
            func store(_ edit: (inout SyncConfiguration) -> Void) -> ControlStore.Change {
                ControlStore.put(Self.change(Self.configuration, edit), by: "console:alice")
            }
            let configurations = try await Self.actions(
                database,
                [
                    store { _ in }, store { $0.description = "two" },
                    store { $0.description = "two" }, ControlStore.delete(id, bizType, by: "m"),
                    ControlStore.setOnline(false, id, bizType, by: "m"),
                    ControlStore.setOnline(true, id, bizType, by: "m"),
                    store {
                        $0.description = "two"
                        $0.isOnline = false
                    }, ControlStore.delete(id, bizType, by: "m"), ControlStore.delete(id, bizType, by: "m"),
                ])
            #expect(
                configurations == [
                    .createConfiguration, .modifyConfiguration, .disableConfiguration, .publishConfiguration,
                    .disableConfiguration, .deleteConfiguration,
                ])
        }
    }

    @Test("C9: a record has the whole configuration or instance, before and after, by the names of the API")
    func members() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let gateway = ValidatorForm.MobileGateway(appID: "app", workspaceID: "space")
            let instance = Self.change(Self.instance) {
                $0.validatorForm = .mobileGateway(gateway)
                $0.limits = KeyLimits(requestsPerSecond: 5, pushesPerDay: nil)
            }
            _ = try await database.run(ControlStore.create(instance, by: "m"))
            _ = try await database.run(ControlStore.create(Self.configuration, by: "console:alice"))
            let changed = Self.change(Self.configuration) {
                $0.repush = .all
                $0.checksSession = true
                $0.verdictLifetime = .milliseconds(1_500)
                $0.revision = 1
            }
            _ = try await database.run(ControlStore.modify(changed, by: "console:alice"))
            let records = try await Self.records(database)
            let before = #"""
                {"scope": "appointed", "online": true, "repush": 100, "target": "user", "bizType": "B", "revision": 1, \#
                "immediate": false, "instanceId": "app", "persistent": true, "description": "one", \#
                "multiDevice": true, "checkSession": false, "verdictLifetimeSeconds": null}
                """#
            #expect(records[1].before == nil && records[1].after == before)
            #expect(records[2].before == before && records[2].subject == "B" && records[2].actor == "console:alice")
            #expect(records[2].after?.contains(#""repush": "all""#) == true)
            #expect(records[2].after?.contains(#""verdictLifetimeSeconds": 1.5"#) == true)
            #expect(
                records[0].after == #"""
                    {"name": "one", "enabled": true, "relayUrl": "", "revision": 1, "instanceId": "app", "bindDevices": false, \#
                    "gatewayAppId": "app", "pushesPerDay": null, "validatorUrl": "", "retentionDays": 30, \#
                    "sessionLength": 100, "validatorMode": "mgs", "requireSignature": false, "requestsPerSecond": 5, \#
                    "gatewayWorkspaceId": "space", "validatorWrapsBody": false, "latestConnectionOwns": false, \#
                    "verdictLifetimeSeconds": 600}
                    """#)
        }
    }

    @Test("SEC15: keys are recorded without any form of their secret")
    func keys() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let (database, id) = (databases[0], Self.instance.id)
            _ = try await database.run(ControlStore.create(Self.instance, by: "m"))
            let key = AppKey(
                id: "k1", purpose: .device, sealedSecret: Array("CANARY-1".utf8),
                limits: KeyLimits(requestsPerSecond: 3), createdAt: WallTime(milliseconds: 0))
            let actions = try await Self.actions(
                database,
                [
                    KeyStore.create(key, of: id, by: "m"), KeyStore.create(key, of: id, by: "m"),
                    KeyStore.reseal("k1", of: id, as: Array("CANARY-2".utf8), by: "m"),
                    KeyStore.revoke("k1", of: id, by: "m"), KeyStore.revoke("k1", of: id, by: "m"),
                ])
            #expect(actions == [.createKey, .resealKey, .revokeKey])
            let records = try await Self.records(database)
            #expect(records.allSatisfy { $0.subject == ($0.number == 1 ? "app" : "k1") })
            #expect(records[1].after?.contains(#""purpose": "device""#) == true)
            let texts = records.flatMap { [$0.before ?? "", $0.after ?? "", $0.subject] }
            let hex = HexText.of(Array("CANARY".utf8))
            #expect(texts.allSatisfy { !$0.contains("CANARY") && !$0.contains(hex) })
        }
    }

    @Test("SEC15: control data cannot be changed without a record: the writer has no right to its tables")
    func rights() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure()
            for statement in [
                "UPDATE instance SET name = 'x'", "DELETE FROM sync_configuration", "DELETE FROM app_key",
                "INSERT INTO operation_record SELECT * FROM operation_record", "DELETE FROM operation_record",
                "UPDATE operation_record SET actor = 'x'", "UPDATE record_head SET number = 0",
                "SELECT finish_change('{m,s}', 1, 'app', '', NULL, NULL)",
            ] {
                let refused = await refusal { try await databases[0].executeAsWriter(statement) }
                #expect(refused?.code == .server(sqlState: "42501"), "\(statement)")
            }
        }
    }
}
