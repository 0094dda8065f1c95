import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Subscription parameters in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct SubscriptionStoreTests {
    private static let app = InstanceID("app")
    private static let bizType = BizType("B")

    private static func configuration(
        _ filter: String = "n >= $from", kind: ChannelKind = .user, isMultiDevice: Bool = true
    ) -> SyncConfiguration {
        SyncConfiguration(
            instanceID: app, bizType: bizType, description: "", kind: kind, isMultiDevice: isMultiDevice,
            isPersistent: true, repush: .all, checksSession: false, isOnline: true,
            subscription: SubscriptionText(
                filter: filter, attributes: "n number", parameters: "from number = 0"))
    }

    /// A database with a lease, and devices that register.
    private struct Fixture {
        let database: TestDatabase
        let lease: Int64
        private(set) var number: UInt64 = 0
        private(set) var connections: [String: Int64] = [:]

        init(_ database: TestDatabase, _ configuration: SyncConfiguration) async throws {
            self.database = database
            try await database.configure([configuration])
            lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0)).epoch
        }

        static func registration(
            _ device: String, store: String, user: String, lease: Int64, number: UInt64, connection: Int64,
            from: Int?, takesOwnership: Bool
        ) -> DeviceSessionStore.Registration {
            var session = DeviceSessionStore.Registration(
                gatewayID: "g", gatewayEpoch: lease, instanceID: app, deviceID: DeviceID(device),
                storeID: StoreID(store), userID: UserID(user),
                traits: DeviceTraits(operatingSystem: .iOS, appVersion: "1.0", slot: DeviceSlot(number: 0)),
                isForeground: true, connectionNumber: 1, registrationNumber: number, connectionEpoch: connection,
                takesOwnership: takesOwnership, verdictMilliseconds: 0, suspended: [])
            session.filtered = [bizType]
            session.parameters =
                from.map {
                    [DeviceParameter(bizType: bizType, name: "from", value: .number(Double($0)))]
                } ?? []
            return session
        }

        /// Registers, or registers again. Returns the state with which the session begins.
        mutating func register(
            _ device: String, store: String = "s", user: String = "u", from: Int?, isNew: Bool = false,
            repeats: Int = 1
        ) async throws -> SessionStoreAnswer.Opened {
            number += 1
            let connection = isNew ? 0 : connections[device] ?? 0
            let session = Self.registration(
                device, store: store, user: user, lease: lease, number: number, connection: connection, from: from,
                takesOwnership: connection == 0)
            var opened: SessionStoreAnswer.Opened?
            for _ in 0..<repeats {
                let answers = try await database.asDelivery { try $0.perform([.open(session, sessionDigest: [])]) }
                guard case .opened(let found) = try #require(answers.first).get() else { continue }
                opened = found
            }
            let found = try #require(opened)
            connections[device] = found.registered.connectionEpoch
            return found
        }

        /// Registers again. Returns nil when it succeeded.
        func refusedRegistration(_ device: String, from: Int) async throws -> PostgresError? {
            let session = Self.registration(
                device, store: "s", user: "u", lease: lease, number: number + 1, connection: 0, from: from,
                takesOwnership: true)
            let answer = try await database.asDelivery { try $0.perform([.open(session, sessionDigest: [])])[0] }
            if case .failure(let error) = answer { return error }
            return nil
        }

        func push(_ numbers: [Int], kind: ChannelKind = .user, target: String = "u") async throws {
            _ = try await database.append(numbers.map { SubscriptionStoreTests.push($0, kind: kind, target: target) })
        }

        /// The oplogs of the waiting re-reads.
        func rereads(_ opened: SessionStoreAnswer.Opened) -> [Int64] { opened.rereads.map(\.oplog.id.value) }

        func finish(_ opened: SessionStoreAnswer.Opened) async throws {
            for reread in opened.rereads {
                let store = database.stores.store(ofID: reread.id)
                try await database.run(RereadStore.finish(reread.id, in: store))
            }
        }
    }

    private static func push(_ number: Int, kind: ChannelKind, target: String) -> OplogStore.Append {
        OplogStore.Append(
            address: ChannelAddress(
                target: TargetAddress(instanceID: app, kind: kind, target: target), bizType: bizType),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID("\(number)-\(target)-\(UInt64.random(in: 0 ... .max))"),
                payload: [1], isBinary: false, targeting: Targeting(), validUntil: WallTime(milliseconds: 0),
                createdAt: WallTime(milliseconds: 0), isPersistent: true,
                attributes: SubscriptionValues(["n": .number(Double(number))]).text))
    }

    /// Runs the body with a database of one store, and with one of four.
    private static func with(
        _ configuration: SyncConfiguration = configuration(), connections: Int = 1, stores: [Int] = [1, 4],
        _ body: @Sendable (inout Fixture, [TestDatabase]) async throws -> Void
    ) async throws {
        for count in stores {
            try await TestDatabase.with(connections: connections, stores: StoreLayout(count: count)) { databases in
                var fixture = try await Fixture(databases[0], configuration)
                try await body(&fixture, databases)
            }
        }
    }

    @Test("a new receiver applies its value from the first oplog; a change makes re-reads of matching oplogs, once")
    func change() async throws {
        try await Self.with { fixture, _ in
            try await fixture.push([1, 5, 9])
            let first = try await fixture.register("d", from: 5)
            #expect(fixture.rereads(first).isEmpty)
            let filters = try #require(first.channels.first?.filters)
            #expect(filters.segments.count == 1 && !filters.flows(OplogID(1), attributes: "{\"n\":1}"))
            let second = try await fixture.register("d", from: 2)
            #expect(fixture.rereads(second).isEmpty, "nothing between")
            let third = try await fixture.register("d", from: nil)
            #expect(fixture.rereads(third) == [1])
            // The same again, as after a lost reply.
            #expect(fixture.rereads(try await fixture.register("d", from: nil, repeats: 3)) == [1])
            try await fixture.finish(third)
            for from in [5, 0, 9, 1, nil] {
                #expect(fixture.rereads(try await fixture.register("d", from: from)).isEmpty, "A, B, A")
            }
            try await fixture.push([3, 7])
            let last = try await fixture.register("d", from: 6)
            #expect(last.channels.first?.filters?.segments.last?.upto == nil)
            #expect(last.channels.first?.filters?.flows(OplogID(4), attributes: "{\"n\":3}") == true, "appended before")
        }
    }

    @Test("a receiver that got all oplogs, before there was a filter, does not get them again")
    func filterComesLater() async throws {
        try await Self.with(Self.configuration("")) { fixture, databases in
            try await fixture.push([1, 5])
            _ = try await fixture.register("d", from: nil)
            _ = try await databases[0].run(ControlStore.put(Self.configuration(), by: "test"))
            let filtered = try await fixture.register("d", from: 4)
            #expect(filtered.channels.first?.filters?.segments.map(\.upto) == [OplogID(2), nil])
            try await fixture.push([2, 6])
            _ = try await databases[0].run(ControlStore.put(Self.configuration(""), by: "test"))
            let all = try await fixture.register("d", from: nil)
            #expect(fixture.rereads(all) == [3], "only oplogs that the filter left out, and nothing before it")
        }
    }

    @Test("a device's value goes before the server's; a removed value is gone; others have their own")
    func userValues() async throws {
        try await Self.with { fixture, databases in
            try await fixture.push([1, 5, 9])
            func storeValue(_ value: Double?) async throws {
                let parameter = DeviceParameter(
                    bizType: Self.bizType, name: "from", value: value.map { .number($0) })
                try await databases[0].run(
                    SubscriptionStore.store(
                        [parameter], of: UserID("u"), in: Self.app,
                        databases[0].stores.store(of: UserID("u"), in: Self.app)))
            }
            try await storeValue(6)
            let first = try await fixture.register("d", from: nil)
            #expect(first.userParameters.map(\.value) == [.number(6)])
            #expect(first.channels.first?.filters?.current?.text == "{\"from\":6.0}\nn >= $from")
            try await storeValue(3)
            #expect(fixture.rereads(try await fixture.register("d", from: nil)) == [2])
            #expect(fixture.rereads(try await fixture.register("d", from: 1)) == [2, 1])
            try await storeValue(nil)
            #expect(try await fixture.register("d", from: nil).userParameters.isEmpty)
            #expect(
                try await databases[0].run(SubscriptionStore.gateways(of: UserID("u"), in: Self.app)) == ["g"])
        }
    }

    @Test("one sync point for the user: only the owner's values count, and re-reads go with the owner; devices too")
    func singleDevice() async throws {
        try await Self.with(Self.configuration(isMultiDevice: false)) { fixture, _ in
            try await fixture.push([1, 5])
            _ = try await fixture.register("d", from: 4)
            let other = try await fixture.register("e", from: 9)
            #expect(other.channels.first?.filters?.current?.text.hasPrefix("{\"from\":9.0}") == true)
            let former = try await fixture.register("d", from: 0)
            #expect(fixture.rereads(former).isEmpty && former.channels.first?.filters?.segments.count == 2)
            let owner = try await fixture.register("e", from: 0)
            #expect(fixture.rereads(owner) == [1])
            #expect(fixture.rereads(try await fixture.register("d", from: 0, isNew: true)) == [1], "the owner now")
        }
        try await Self.with(Self.configuration(kind: .device, isMultiDevice: false)) { fixture, _ in
            try await fixture.push([1, 5], kind: .device, target: "d")
            _ = try await fixture.register("d", from: 4)
            #expect(fixture.rereads(try await fixture.register("d", store: "t", from: 0, isNew: true)) == [1])
        }
    }

    @Test(
        "a new store of the device has no history: its filter applies from the beginning, and old re-reads end")
    func newStore() async throws {
        try await Self.with { fixture, _ in
            try await fixture.push([1, 5])
            _ = try await fixture.register("d", from: 4)
            #expect(fixture.rereads(try await fixture.register("d", from: 0)) == [1])
            let new = try await fixture.register("d", store: "t", from: 0, isNew: true)
            #expect(fixture.rereads(new).isEmpty && new.channels.first?.filters?.segments.count == 1)
        }
    }

    @Test("an unknown channel is created, so that its filter counts from its first oplog")
    func noChannel() async throws {
        try await Self.with { fixture, _ in
            let first = try await fixture.register("d", from: 5)
            #expect(first.channels.map(\.head) == [.zero] && first.channels.first?.filters != nil)
            try await fixture.push([1, 7])
            #expect(fixture.rereads(try await fixture.register("d", from: 0)) == [1])
        }
    }

    @Test("a recalled, expired or foreign oplog is not read again, and no oplog of another user")
    func notForIt() async throws {
        try await Self.with(stores: [1]) { fixture, databases in
            try await fixture.push([1, 2, 3])
            try await fixture.push([1], target: "v")
            _ = try await fixture.register("d", from: 9)
            try await databases[0].execute(
                """
                UPDATE oplog SET valid_until = now() WHERE oplog_id = 1;
                UPDATE oplog SET operating_system = 2 WHERE oplog_id = 2
                """)
            #expect(fixture.rereads(try await fixture.register("d", from: 0)) == [3])
        }
    }

    @Test("a superseded connection changes nothing: its value is ignored after the newer one's")
    func superseded() async throws {
        try await Self.with { fixture, databases in
            try await fixture.push([1, 5])
            _ = try await fixture.register("d", from: 4)
            _ = try await fixture.register("d", from: 4, isNew: true)
            let late = Fixture.registration(
                "d", store: "s", user: "u", lease: fixture.lease, number: 1, connection: 0, from: 0,
                takesOwnership: true)
            let answers = try await databases[0].asDelivery { try $0.perform([.open(late, sessionDigest: [])]) }
            guard case .opened(let opened) = try #require(answers.first).get() else { return }
            #expect(opened.registered.connectionEpoch == 0)
            #expect(try await databases[0].rows("SELECT 1::text FROM reread", columns: 1).isEmpty)
        }
    }

    @Test("pushes race with changes: new oplogs and re-reads bring each oplog once, in any schedule")
    func race() async throws {
        try await Self.with(connections: 3) { fixture, databases in
            _ = try await fixture.register("d", from: 5)
            let pushing = databases[1]
            async let pushes: Void = {
                for round in 0..<60 {
                    _ = try await pushing.append([Self.push(round % 10, kind: .user, target: "u")])
                }
            }()
            var brought: [Int64] = []
            var histories: [FilterHistory] = []
            for round in 0..<20 {
                let opened = try await fixture.register("d", from: [5, 2, 8, 0][round % 4])
                brought += fixture.rereads(opened)
                try await fixture.finish(opened)
                if let filters = opened.channels.first?.filters { histories.append(filters) }
            }
            try await pushes
            var opened = try await fixture.register("d", from: 0)
            while !opened.rereads.isEmpty {
                brought += fixture.rereads(opened)
                try await fixture.finish(opened)
                opened = try await fixture.register("d", from: 0)
            }
            let flow = try #require(opened.channels.first?.filters)
            let stored = try await databases[0].rows("SELECT oplog_id::text, attributes FROM oplog", columns: 2)
            let flowing = stored.compactMap { row -> Int64? in
                guard let id = row[0].flatMap({ Int64($0) }) else { return nil }
                return flow.flows(OplogID(id), attributes: row[1] ?? "") ? id : nil
            }
            #expect((brought + flowing).sorted() == (1...60).map { Int64($0) })
            #expect(histories.count == 20)
        }
    }

    @Test("a server warning while filters are stored leaves no transaction open")
    func warning() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            var fixture = try await Fixture(database, Self.configuration())
            try await fixture.push([1, 2, 3])
            try await database.execute(
                """
                CREATE FUNCTION warn() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE WARNING ''something''; RETURN NEW; END';
                CREATE TRIGGER warn BEFORE INSERT ON subscription_segment FOR EACH ROW EXECUTE FUNCTION warn()
                """)
            #expect(try await fixture.refusedRegistration("d", from: 2)?.code == .outcomeUnknown)
            let open = """
                SELECT pid::text FROM pg_stat_activity
                WHERE datname = current_database() AND state LIKE 'idle in transaction%'
                """
            // Well below 2 s, when the server itself ends a session that is idle in a transaction.
            try await eventually("no transaction is open", within: .milliseconds(400)) {
                try await database.rows(open, columns: 1).isEmpty
            }
            try await database.execute("DROP TRIGGER warn ON subscription_segment")
            #expect(try await fixture.register("d", from: 2).registered.connectionEpoch > 0)
        }
    }
}
