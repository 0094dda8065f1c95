import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("The second check in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct RowSecurityTests {
    private static func push(_ instance: String) -> OplogStore.Append {
        let target = TargetAddress(instanceID: InstanceID(instance), kind: .user, target: "u")
        return OplogStore.Append(
            address: ChannelAddress(target: target, bizType: BizType("B")),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID("m"), payload: [120], isBinary: false, targeting: Targeting(),
                validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0), isPersistent: true))
    }

    /// Two instances, "app" and "other", with a configuration, a channel, an oplog, a session and an owner each.
    private static func fill(_ database: TestDatabase) async throws {
        try await database.configure()
        try await database.execute(
            """
            INSERT INTO instance (instance_id, name, is_enabled, validator_url, verdict_lifetime_ms, retention)
                SELECT 'other', name, is_enabled, validator_url, verdict_lifetime_ms, retention FROM instance;
            INSERT INTO sync_configuration (instance_id, biz_type, description, kind, is_multi_device, is_persistent,
                threshold, checks_session, is_online, is_immediate) SELECT 'other', biz_type, description, kind, is_multi_device, is_persistent,
                threshold, checks_session, is_online, is_immediate FROM sync_configuration;
            INSERT INTO device_session SELECT i, 'd', 's', 0, 'u', 'g', 1, 1, 1, 1, 0, '', 0, true, now(), 1, '{}'
                FROM unnest('{app,other}'::text[]) i;
            INSERT INTO owner SELECT i, 'u', 'd', 1 FROM unnest('{app,other}'::text[]) i;
            """)
        _ = try await database.append([push("app"), push("other")])
    }

    @Test("SEC10: every table with an instance has the second check")
    func everyTable() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let bare = try await databases[0].rows(
                """
                SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                WHERE c.relnamespace IN ('public'::regnamespace, 'delivery'::regnamespace) AND c.relkind IN ('r', 'p')
                    AND a.attname = 'instance_id'
                    AND NOT (c.relrowsecurity AND c.relforcerowsecurity
                        AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))
                """, columns: 1)
            #expect(bare.isEmpty)
        }
    }

    @Test("SEC10: an operator's connection reads rows of its instance alone, when a statement lacks its condition")
    func forgotten() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await Self.fill(database)
            func instances(in table: String) async throws -> [String] {
                let sql = "SELECT DISTINCT instance_id::text FROM \(table) ORDER BY 1"
                return try await database.run([PostgresStatement(sql)])[0].get().decode(String.self)
            }
            let tables = ["instance", "sync_configuration", "channel", "device_session", "owner"]
            for table in tables { #expect(try await instances(in: table) == ["app", "other"], "\(table)") }
            try await database.executeAsWriter("SET ROLE mss_operator")
            for table in tables { #expect(try await instances(in: table) == [], "\(table)") }
            for instance in ["app", "other"] {
                try await database.run(SyncDatabase.bind(to: InstanceID(instance)))
                for table in tables { #expect(try await instances(in: table) == [instance], "\(table)") }
            }
            try await database.run(SyncDatabase.bind(to: InstanceID("")))
            for table in tables { #expect(try await instances(in: table) == [], "\(table)") }
        }
    }

    @Test("SEC10: a recall affects the connection's own instance alone, also when it names another")
    func recall() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await Self.fill(database)
            let recall = OplogStore.recall(Self.push("other").address, ThirdMessageID("m"))
            for instance in ["", "app"] {
                #expect(try await database.runAsOperator(recall, of: InstanceID(instance)) == nil)
            }
            let recalled = "SELECT oplog_id::text FROM oplog WHERE recalled_at IS NOT NULL"
            #expect(try await database.rows(recalled, columns: 1).isEmpty)
            #expect(try await database.runAsOperator(recall, of: InstanceID("other")) != nil)
        }
    }

    @Test("SEC10: the second check costs the writer nothing: its statements have the same plans")
    func plans() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let registration = DeviceSessionStore.Registration(
                gatewayID: "g", gatewayEpoch: 1, instanceID: InstanceID("app"), deviceID: DeviceID("d"),
                storeID: StoreID("s"), userID: UserID("u"),
                traits: DeviceTraits(operatingSystem: nil, appVersion: "", slot: DeviceSlot(number: 0)),
                isForeground: true, connectionNumber: 1, registrationNumber: 1, connectionEpoch: 0,
                takesOwnership: false,
                verdictMilliseconds: 0, suspended: [])
            let statements = [
                DeviceSessionStore.presence(of: [Self.push("app").address]).statement,
                DeviceSessionStore.channels(of: registration).statement,
                DeviceSessionStore.sweep(gatewayID: "g", since: "1:1:").statement,
                OplogStore.page(of: 1, after: .zero, limit: 64).statement,
            ]
            func plans() async throws -> [String] {
                var lines: [String] = []
                for statement in statements {
                    let explain = PostgresStatement("EXPLAIN (COSTS OFF) " + statement.sql, statement.parameters)
                    lines += try await database.run([explain])[0].get().decode(String.self)
                }
                return lines
            }
            let belted = try await plans()
            try await database.execute(
                """
                ALTER TABLE channel DISABLE ROW LEVEL SECURITY; ALTER TABLE device_session DISABLE ROW LEVEL SECURITY;
                ALTER TABLE owner DISABLE ROW LEVEL SECURITY;
                ALTER TABLE sync_configuration DISABLE ROW LEVEL SECURITY;
                """)
            let bare = try await plans()
            #expect(belted == bare)
        }
    }
}
