import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Device sessions in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct DeviceSessionStoreTests {
    private static let app = InstanceID("app")
    private static let user = TargetAddress(instanceID: app, kind: .user, target: "u")

    private static func channel(_ bizType: String = "B") -> ChannelAddress {
        ChannelAddress(target: user, bizType: BizType(bizType))
    }

    private static func session(
        _ device: String, on gateway: String, _ lease: Int64, number: UInt64 = 1, registration: UInt64? = nil,
        ofDevice deviceNumber: UInt64 = 0, connection: Int64 = 0,
        user: String? = "u", takesOwnership: Bool = true, verdict: Int64 = 0, suspended: [String] = []
    ) -> DeviceSessionStore.Registration {
        DeviceSessionStore.Registration(
            gatewayID: gateway, gatewayEpoch: lease, instanceID: app, deviceID: DeviceID(device),
            storeID: StoreID("s"), userID: user.map { UserID($0) },
            traits: DeviceTraits(
                operatingSystem: OperatingSystem(name: "iOS"), appVersion: "1.0", slot: DeviceSlot(number: 0)),
            isForeground: true,
            connectionNumber: number, registrationNumber: registration ?? number,
            deviceConnectionNumber: deviceNumber, connectionEpoch: connection,
            takesOwnership: takesOwnership,
            verdictMilliseconds: verdict,
            suspended: suspended.map { BizType($0) })
    }

    private static func push(_ key: String) -> OplogStore.Append {
        OplogStore.Append(
            address: channel(),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [1], isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true))
    }

    @Test("a lease is renewed under its epoch; another epoch takes a new lease, and the old sessions are removed")
    func leases() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let first = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            #expect(try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: first)).epoch == first)
            _ = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", first)))
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.channel()])).count == 1)
            // A second process of the same name, or the same one after a restart.
            let second = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            #expect(second > first)
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.channel()])).isEmpty)
            let late = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", first)))
            #expect(!late.hasLease && late.connectionEpoch == 0)
        }
    }

    @Test("each renewal returns the number of gateways with a lease, and of their sessions")
    func fleet() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            func renew(_ gateway: String, _ epoch: Int64, _ sessions: Int) async throws -> DeviceSessionStore.Lease {
                try await database.run(
                    DeviceSessionStore.renewLease(gatewayID: gateway, epoch: epoch, sessions: sessions))
            }
            let (one, two) = (try await renew("one", 0, 5).epoch, try await renew("two", 0, 0).epoch)
            let told = try await renew("one", one, 7)
            #expect(told.gateways == 2 && told.sessions == 7)
            _ = try await renew("two", two, 30)
            #expect(try await renew("one", one, 7).sessions == 37)
            try await database.execute("DELETE FROM gateway WHERE gateway_id = 'two'")
            let alone = try await renew("one", one, 7)
            #expect(alone.gateways == 1 && alone.sessions == 7)
        }
    }

    @Test("sessions of a gateway whose lease a writer has ended do not count as online") func expiry() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            _ = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", lease)))
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.channel()])).count == 1)
            let held = try await database.run(LeaseRecord.read).leases[0]
            try await database.run(Query(LeaseRecord.Change.end(held).statement) { _ in })
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.channel()])).isEmpty)
            // An ended lease cannot be renewed: the gateway takes a new one.
            #expect(try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: lease)).epoch > lease)
        }
    }

    @Test("the newest connection of a device wins in any order of arrival, and the older one's gateway is notified")
    func takeover() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let one = try await database.run(DeviceSessionStore.renewLease(gatewayID: "one", epoch: 0)).epoch
            let two = try await database.run(DeviceSessionStore.renewLease(gatewayID: "two", epoch: 0)).epoch
            let old = try await database.run(DeviceSessionStore.register(Self.session("d", on: "one", one)))
            let new = try await database.run(DeviceSessionStore.register(Self.session("d", on: "two", two)))
            #expect(new.connectionEpoch > old.connectionEpoch && new.supersededGatewayID == "one")
            // The old connection registers once more, too late.
            let again = try await database.run(
                DeviceSessionStore.register(Self.session("d", on: "one", one, connection: old.connectionEpoch)))
            #expect(again.connectionEpoch == 0 && again.hasLease)
            // The end of the old connection must not remove the new one.
            try await database.run(
                DeviceSessionStore.close(
                    instanceID: Self.app, deviceID: DeviceID("d"), connectionEpoch: old.connectionEpoch))
            let present = try await database.run(DeviceSessionStore.presence(of: [Self.channel()]))
            #expect(present.map(\.gatewayID) == ["two"])
        }
    }

    @Test("a repeated or late registration supersedes neither its own connection nor a later one")
    func repeatedRegistration() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            func register(_ number: UInt64) async throws -> DeviceSessionStore.Registered {
                try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", lease, number: number)))
            }
            let first = try await register(7)
            let repeated = try await register(7)
            #expect(repeated.connectionEpoch == first.connectionEpoch && repeated.supersededGatewayID == nil)
            let second = try await register(8)
            #expect(second.connectionEpoch > 0 && second.supersededGatewayID == "g")
            let late = try await register(7)
            #expect(late.connectionEpoch == 0 && late.hasLease)
            #expect(try await register(8).connectionEpoch == second.connectionEpoch)
            // Connection numbers are per gateway, and begin again with its process.
            let other = try await database.run(DeviceSessionStore.renewLease(gatewayID: "h", epoch: 0)).epoch
            let moved = try await database.run(
                DeviceSessionStore.register(Self.session("d", on: "h", other, number: 1)))
            #expect(moved.connectionEpoch > second.connectionEpoch && moved.supersededGatewayID == "g")
        }
    }

    @Test("of two connections of one store, the one that the device opened later wins, in any order of registration")
    func deviceNumbers() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let one = try await database.run(DeviceSessionStore.renewLease(gatewayID: "one", epoch: 0)).epoch
            let two = try await database.run(DeviceSessionStore.renewLease(gatewayID: "two", epoch: 0)).epoch
            func register(
                _ number: UInt64, on gateway: String, _ lease: Int64, connection: Int64 = 0
            ) async throws -> DeviceSessionStore.Registered {
                try await database.run(
                    DeviceSessionStore.register(
                        Self.session("d", on: gateway, lease, ofDevice: number, connection: connection)))
            }
            let newer = try await register(8, on: "two", two)
            let late = try await register(7, on: "one", one)
            #expect(newer.connectionEpoch > 0 && late.connectionEpoch == 0 && late.hasLease)
            // The newer connection is not registered when the older one registers. It takes its place back when it
            // registers again.
            try await database.run(
                DeviceSessionStore.close(
                    instanceID: Self.app, deviceID: DeviceID("d"), connectionEpoch: newer.connectionEpoch))
            let older = try await register(7, on: "one", one)
            #expect(older.connectionEpoch > newer.connectionEpoch)
            let back = try await register(8, on: "two", two, connection: newer.connectionEpoch)
            #expect(back.connectionEpoch > older.connectionEpoch && back.supersededGatewayID == "one")
            #expect(try await register(7, on: "one", one, connection: older.connectionEpoch).connectionEpoch == 0)
        }
    }

    @Test("a late registration of the same connection restores no earlier bind, and takes no ownership again")
    func lateBind() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            func bind(_ user: String, device: String = "d", number: UInt64 = 7, registration: UInt64) async throws
                -> Int64
            {
                try await database.run(
                    DeviceSessionStore.register(
                        Self.session(device, on: "g", lease, number: number, registration: registration, user: user))
                ).connectionEpoch
            }
            let epoch = try await bind("a", registration: 1)
            _ = try await bind("a", device: "other", number: 8, registration: 2)
            // The first registration again: the other device stays the owner.
            #expect(try await bind("a", registration: 1) == epoch)
            #expect(try await database.rows("SELECT device_id FROM owner", columns: 1) == [["other"]])
            #expect(try await bind("u", registration: 3) == epoch)
            #expect(try await bind("a", registration: 1) == 0)
            let user = "SELECT user_id FROM device_session WHERE device_id = 'd'"
            #expect(try await database.rows(user, columns: 1) == [["u"]])
        }
    }

    @Test("H4: of a session's verdicts the one that its gateway sent last counts, in any order of execution")
    func lateVerdict() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            func register(_ number: UInt64, connection: Int64 = 0, of opened: UInt64 = 1, verdict: Int64)
                async throws -> Int64
            {
                try await database.run(
                    DeviceSessionStore.register(
                        Self.session(
                            "d", on: "g", lease, number: opened, registration: number, connection: connection,
                            verdict: verdict))
                ).connectionEpoch
            }
            func update(_ number: UInt64, _ connection: Int64, verdict: Int64) async throws {
                try await database.run(
                    DeviceSessionStore.update(
                        instanceID: Self.app, deviceID: DeviceID("d"), connectionEpoch: connection, number: number,
                        isForeground: true, verdictMilliseconds: verdict))
            }
            func isValid() async throws -> [Bool] {
                try await database.run(DeviceSessionStore.presence(of: [Self.channel()])).map(\.hasValidVerdict)
            }
            let first = try await register(1, verdict: 0)
            try await update(3, first, verdict: 0)
            try await update(2, first, verdict: 60_000)
            #expect(try await isValid() == [false], "a valid verdict after the revocation that followed it")
            try await update(5, first, verdict: 0)
            #expect(try await register(4, connection: first, verdict: 60_000) == first)
            #expect(try await isValid() == [false], "a registration after a later update")
            try await update(6, first, verdict: 60_000)
            #expect(try await isValid() == [true])
            // The number of another connection does not count.
            try await update(9, first, verdict: 0)
            let second = try await register(8, of: 2, verdict: 60_000)
            #expect(second > first)
            #expect(try await isValid() == [true])
        }
    }

    @Test("when a device opens two first connections at once, the gateway of the older one is notified")
    func firstAtOnce() async throws {
        try await TestDatabase.with(connections: 3) { databases in
            try await databases[0].configure()
            let one = try await databases[0].run(DeviceSessionStore.renewLease(gatewayID: "one", epoch: 0)).epoch
            let two = try await databases[0].run(DeviceSessionStore.renewLease(gatewayID: "two", epoch: 0)).epoch
            try await databases[0].execute(
                """
                BEGIN; SELECT register_session(
                    'one', \(one), 'app', 'd', 's', 0, 'u', 1::smallint, '1.0', 0::smallint, true, 1, 1, 0, true, 0, 0,
                    '{}', false, '')
                """)
            async let waits = databases[1].run(DeviceSessionStore.register(Self.session("d", on: "two", two)))
            let waiting = """
                SELECT pid::text FROM pg_stat_activity
                WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%register_session%'
                """
            try await eventually("the second waits for the first", within: .seconds(10)) {
                try await databases[2].rows(waiting, columns: 1).count == 1
            }
            try await databases[0].execute("COMMIT")
            let second = try await waits
            #expect(second.connectionEpoch > 0 && second.supersededGatewayID == "one")
        }
    }

    @Test("the device that bound last is the owner; a device that registers again does not take ownership back")
    func ownership() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            let first = try await database.run(DeviceSessionStore.register(Self.session("a", on: "g", lease)))
            _ = try await database.run(DeviceSessionStore.register(Self.session("b", on: "g", lease)))
            _ = try await database.run(
                DeviceSessionStore.register(
                    Self.session(
                        "a", on: "g", lease, connection: first.connectionEpoch, takesOwnership: false)))
            #expect(try await database.rows("SELECT device_id FROM owner", columns: 1) == [["b"]])
            let channel = try await database.append([Self.push("1")])[0].channelID
            #expect(try await database.run(OplogStore.head(of: channel, readBy: DeviceID("a"))) == nil)
            #expect(try await database.run(OplogStore.head(of: channel, readBy: DeviceID("b"))) == OplogID(1))
        }
    }

    @Test("D17: a configuration that becomes single-device continues from the highest sync point of any device")
    func becomesSingleDevice() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            let session = Self.session("d", on: "g", lease)
            _ = try await database.run(DeviceSessionStore.register(session))
            let channel = try await database.append((1...5).map { Self.push("\($0)") })[0].channelID
            let points = [("d", Int64(2)), ("e", 4)].map {
                SyncPointStore.Advance(channelID: channel, deviceID: $0, storeID: "s", upto: OplogID($1))
            }
            try await database.run(SyncPointStore.advance(points))
            func point() async throws -> [Int64] {
                try await database.run(DeviceSessionStore.channels(of: session)).map(\.syncPoint.value)
            }
            #expect(try await point() == [2])
            try await database.configure(isMultiDevice: false)
            #expect(try await point() == [4])
        }
    }

    @Test("D8: the user's one sync point moves only by the owner's stored data, never by a reported position")
    func onlyTheOwnerAdvances() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure(isMultiDevice: false)
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            let owner = Self.session("owner", on: "g", lease)
            _ = try await database.run(DeviceSessionStore.register(owner))
            let stranger = Self.session("stranger", on: "g", lease, number: 2, takesOwnership: false)
            #expect(try await !database.run(DeviceSessionStore.register(stranger)).ownsUser)
            let channel = try await database.append((1...5).map { Self.push("\($0)") })[0].channelID
            func advance(to upto: Int64, by device: String) async throws -> [Int64] {
                try await database.run(
                    SyncPointStore.advance([
                        .init(channelID: channel, deviceID: "", storeID: "", upto: OplogID(upto), storedBy: device)
                    ]))
                return try await database.run(DeviceSessionStore.channels(of: owner)).map(\.syncPoint.value)
            }
            #expect(try await advance(to: (1 << 53) - 1, by: "stranger") == [0])
            #expect(try await advance(to: 5, by: "") == [0])
            #expect(try await advance(to: 3, by: "owner") == [3])
            // The app binds the user on the other device.
            _ = try await database.run(DeviceSessionStore.register(Self.session("stranger", on: "g", lease, number: 3)))
            #expect(try await advance(to: 4, by: "owner") == [3])
            #expect(try await advance(to: 5, by: "stranger") == [5])
        }
    }

    @Test("D8: after a failover, a device's epoch makes it the owner again; a later owner, or no epoch, stays")
    func givenOwnership() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure(isMultiDevice: false)
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            var number: UInt64 = 0
            func register(
                _ device: String, asks: Bool = false, epoch: Int64 = 0
            ) async throws -> DeviceSessionStore.Registered {
                number += 1
                var session = Self.session(device, on: "g", lease, number: number, takesOwnership: asks)
                session.ownershipEpoch = epoch
                return try await database.run(DeviceSessionStore.register(session))
            }
            let first = try await register("first", asks: true)
            let second = try await register("second", asks: true)
            #expect(first.ownsUser && second.ownsUser && second.ownershipEpoch > first.ownershipEpoch)
            let late = try await register("first", epoch: first.ownershipEpoch)
            #expect(!late.ownsUser && late.ownershipEpoch == second.ownershipEpoch)
            // The standby lacks the last commits: all owners, or only the newer one.
            try await database.execute("DELETE FROM owner")
            #expect(try await !register("third").ownsUser)
            #expect(try await !register("third", epoch: (1 << 53) - 1).ownsUser, "no device has this epoch")
            let again = try await register("first", epoch: first.ownershipEpoch)
            #expect(again.ownsUser && again.ownershipEpoch == first.ownershipEpoch)
            #expect(try await register("second", epoch: second.ownershipEpoch).ownsUser)
            #expect(try await !register("first", epoch: first.ownershipEpoch).ownsUser)
            // A bind that the app requests comes after every earlier owner.
            #expect(try await register("first", asks: true).ownsUser)
            #expect(try await !register("second", epoch: second.ownershipEpoch).ownsUser)
        }
    }

    @Test("D16: without a verdict no device becomes the owner where a single-device configuration has the check")
    func ownersAreChecked() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            func configure(validator: String, multiDevice: Bool) async throws {
                try await database.configure([
                    SyncConfiguration(
                        instanceID: Self.app, bizType: BizType("B"), description: "", kind: .user,
                        isMultiDevice: multiDevice, isPersistent: true, repush: .all, checksSession: true,
                        isOnline: true)
                ])
                let instance = Instance(
                    id: Self.app, name: "", isEnabled: true, validatorURL: validator, verdictLifetime: .seconds(600))
                _ = try await database.run(ControlStore.put(instance, by: "test"))
            }
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            func owns(_ device: String, _ number: UInt64, verdict: Int64) async throws -> Bool {
                var session = Self.session(device, on: "g", lease, number: number)
                session.verdictMilliseconds = verdict
                return try await database.run(DeviceSessionStore.register(session)).ownsUser
            }
            try await configure(validator: "http://tenant", multiDevice: false)
            #expect(try await !owns("a", 1, verdict: 0))
            #expect(try await owns("a", 2, verdict: 1_000))
            #expect(try await !owns("b", 3, verdict: 0))
            #expect(try await owns("a", 4, verdict: 0), "an owner stays the owner")
            try await configure(validator: "http://tenant", multiDevice: true)
            #expect(try await owns("b", 5, verdict: 0))
            try await configure(validator: "", multiDevice: false)
            #expect(try await owns("c", 6, verdict: 0), "there is no tenant to ask")
        }
    }

    @Test("channels of a session are found by their keys, also with a plan for an empty table")
    func channelsOfMany() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.executeAsWriter(SyncDatabase.plannerSettings)
            let channels = DeviceSessionStore.channels(of: Self.session("d", on: "g", 1))
            _ = try await database.run(channels)
            try await database.execute(
                """
                INSERT INTO channel (instance_id, kind, target, biz_type)
                SELECT 'app', 0, 'u' || n, 'B' FROM generate_series(1, 2000) n;
                INSERT INTO channel (instance_id, kind, target, biz_type) VALUES ('app', 0, 'u', 'B');
                INSERT INTO sync_point (channel_id, device_id, store_id, oplog_id)
                SELECT channel_id, 'd', 's', 1 FROM channel
                """)
            func read() async throws -> Int {
                try await database.rowsReadByNow(from: "channel") + database.rowsReadByNow(from: "sync_point")
            }
            let before = try await read()
            #expect(try await database.run(channels).map(\.syncPoint) == [OplogID(1)])
            let after = try await read()
            #expect((before + 2...before + 6).contains(after))
        }
    }

    @Test("channels of a session have head and sync point; the sweep finds channels that moved since then")
    func channels() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            let session = Self.session("d", on: "g", lease.epoch)
            _ = try await database.run(DeviceSessionStore.register(session))
            #expect(try await database.run(DeviceSessionStore.channels(of: session)).isEmpty)
            let pushed = try await database.append([Self.push("1"), Self.push("2")])
            let states = try await database.run(DeviceSessionStore.channels(of: session))
            #expect(states.map(\.head.value) == [2] && states.map(\.channelID) == [pushed[0].channelID])
            func sweep(_ gateway: String, since: String) async throws -> DeviceSessionStore.Sweep {
                try await database.run(DeviceSessionStore.sweep(gatewayID: gateway, since: since))
            }
            // The first sweep begins at the time of the lease.
            let found = try await sweep("g", since: lease.snapshot)
            #expect(found.channels.map(\.head.value) == [2])
            #expect(try await sweep("another", since: lease.snapshot).channels.isEmpty)
            #expect(try await sweep("g", since: found.upto).channels.isEmpty, "it was found already")
            #expect(try await sweep("g", since: "").channels.isEmpty)
        }
    }

    @Test("the first sweep after a slow commit finds it, and no other sweep does")
    func lateCommit() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let (database, slow) = (databases[0], databases[1])
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            _ = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", lease.epoch)))
            func sweep(since: String) async throws -> DeviceSessionStore.Sweep {
                try await database.run(DeviceSessionStore.sweep(gatewayID: "g", since: since))
            }
            // It stores now and commits later; its row is an hour older than the commit.
            try await slow.executeAsWriter("BEGIN")
            let late = try await slow.append([Self.push("late")])[0]
            let during = try await sweep(since: lease.snapshot)
            #expect(during.channels.isEmpty)
            // Other transactions commit in the meantime.
            try await database.configure(isMultiDevice: false)
            let again = try await sweep(since: during.upto)
            #expect(again.channels.isEmpty)
            try await slow.executeAsWriter("COMMIT")
            let week = "date_trunc('week', created_at AT TIME ZONE 'UTC') AT TIME ZONE 'UTC'"
            try await database.execute(
                "UPDATE oplog SET created_at = greatest(created_at - interval '1 hour', \(week))")
            let after = try await sweep(since: again.upto)
            #expect(after.channels.map(\.channelID) == [late.channelID])
            #expect(try await sweep(since: after.upto).channels.isEmpty)
        }
    }

    @Test("the sweep finds oplogs by their transactions, and does not scan every oplog") func sweep() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            _ = try await database.append([Self.push("1")])
            try await database.executeAsWriter(
                "SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off")
            let sweep = DeviceSessionStore.sweep(gatewayID: "g", since: "1000:1010:1003").statement
            let explain = PostgresStatement("EXPLAIN " + sweep.sql, sweep.parameters)
            let plan = try await database.run([explain])[0].get().decode(String.self)
            #expect(plan.contains { $0.contains("Index Cond: ((written_by >=") })
            #expect(plan.contains { $0.contains("Index Cond: (written_by = ANY") })
            #expect(!plan.contains { $0.contains("Seq Scan on oplog") })
        }
    }

    @Test(
        "a sweep and a push find the sessions of a channel by their keys, also with a plan for an empty table",
        arguments: [
            SyncModel.ChannelKind.user, .device,
        ])
    func sessionsBesideMany(kind: SyncModel.ChannelKind) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.executeAsWriter(SyncDatabase.plannerSettings)
            func sweep(since: String) async throws -> DeviceSessionStore.Sweep {
                try await database.run(DeviceSessionStore.sweep(gatewayID: "g", since: since))
            }
            let start = try await sweep(since: "").upto
            _ = try await sweep(since: start)
            func present(_ pushes: [OplogStore.Append]) async throws -> Int {
                try await database.run(DeviceSessionStore.presence(of: pushes.map(\.address))).count
            }
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            #expect(try await present([]) == 0)
            try await database.configure([
                SyncConfiguration(
                    instanceID: Self.app, bizType: BizType("B"), description: "", kind: kind, isMultiDevice: true,
                    isPersistent: true, repush: .all, checksSession: false, isOnline: true)
            ])
            try await database.addSessions(2_000, on: "g", lease.epoch)
            let pushes = (1...10).map { number in
                OplogStore.Append(
                    address: ChannelAddress(
                        target: TargetAddress(instanceID: Self.app, kind: kind, target: "d\(number)"),
                        bizType: BizType("B")),
                    oplog: Self.push("\(number)").oplog)
            }
            _ = try await database.append(pushes)
            let before = try await database.rowsReadByNow(from: "device_session")
            #expect(try await sweep(since: start).channels.count == pushes.count)
            let swept = try await database.rowsReadByNow(from: "device_session")
            #expect((before + pushes.count...before + 2 * pushes.count).contains(swept))
            #expect(try await present(pushes) == pushes.count)
            let found = try await database.rowsReadByNow(from: "device_session")
            #expect((swept + pushes.count...swept + 2 * pushes.count).contains(found))
        }
    }

    @Test("H4, H7: a device's suspension counts for its Sync ID alone, until the device changes it")
    func suspended() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
            func register(_ suspended: [String], number: UInt64 = 1, connection: Int64) async throws -> Int64 {
                let session = Self.session(
                    "d", on: "g", lease, number: number, connection: connection, suspended: suspended)
                return try await database.run(DeviceSessionStore.register(session)).connectionEpoch
            }
            func isSuspended(_ bizType: String) async throws -> [Bool] {
                let channel = Self.channel(bizType)
                let present = try await database.run(DeviceSessionStore.presence(of: [Self.channel("other"), channel]))
                #expect(present.filter { $0.ordinal == 0 }.map(\.isSuspended) == [false])
                let traced = try await database.runAsOperator(
                    TraceStore.receivers(of: channel, channelID: 0, oplogID: OplogID(.max), device: nil))
                let everybody = ChannelAddress(
                    target: TargetAddress(instanceID: Self.app, kind: .globalUser, target: ""),
                    bizType: channel.bizType)
                let crowds = try await database.runAsOperator(TraceStore.deviceGroups(of: everybody, share: .everyone))
                let found = present.filter { $0.ordinal == 1 }.map(\.isSuspended)
                #expect(found == traced.map { $0.presence?.isSuspended } && found == crowds.map(\.presence.isSuspended))
                return found
            }
            let connection = try await register(["A", "B"], connection: 0)
            func suspends() async throws -> [[Bool]] {
                var found: [[Bool]] = []
                for bizType in ["A", "B", "C"] { found.append(try await isSuspended(bizType)) }
                return found
            }
            #expect(try await suspends() == [[true], [true], [false]])
            _ = try await register(["C"], connection: connection)
            #expect(try await suspends() == [[false], [false], [true]])
            let other = try await register([], number: 2, connection: 0)
            #expect(other > connection)
            #expect(try await suspends() == [[false], [false], [false]])
        }
    }
}
