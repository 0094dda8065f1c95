import PostgreSQL
import SyncModel
import SyncStore
import Testing

@Suite("Device sessions in PostgreSQL", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct DeviceSessionStoreTests {
    private static let app = InstanceID("app")
    private static let user = TargetAddress(instanceID: app, kind: .user, target: "u")

    private static func session(
        _ device: String, on gateway: String, _ lease: Int64, connection: Int64 = 0, user: String? = "u",
        takesOwnership: Bool = true
    ) -> DeviceSessionStore.Registration {
        DeviceSessionStore.Registration(
            gatewayID: gateway, gatewayEpoch: lease, instanceID: app, deviceID: DeviceID(device),
            storeID: StoreID("s"), userID: user.map { UserID($0) },
            traits: DeviceTraits(operatingSystem: OperatingSystem(name: "iOS"), appVersion: "1.0"), isForeground: true,
            connectionEpoch: connection, takesOwnership: takesOwnership, verdictMilliseconds: 0)
    }

    private static func push(_ key: String) -> OplogStore.Append {
        OplogStore.Append(
            address: ChannelAddress(target: user, bizType: BizType("B")),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [1], isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true))
    }

    @Test("a lease is renewed under its epoch; another epoch takes it anew and the old sessions are gone")
    func leases() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let first = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            #expect(try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: first)) == first)
            _ = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", first)))
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.user])).count == 1)
            // A second process of the same name, or the same one started anew.
            let second = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            #expect(second > first)
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.user])).isEmpty)
            let late = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", first)))
            #expect(!late.hasLease && late.connectionEpoch == 0)
        }
    }

    @Test("sessions of a gateway whose lease has run out do not count as online") func expiry() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            _ = try await database.run(DeviceSessionStore.register(Self.session("d", on: "g", lease)))
            try await database.execute("UPDATE gateway SET lease_until = clock_timestamp()")
            #expect(try await database.run(DeviceSessionStore.presence(of: [Self.user])).isEmpty)
            // An expired lease is not renewed but taken anew.
            #expect(try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: lease)) > lease)
        }
    }

    @Test("the newest connection of a device wins in any order of arrival, and its gateway learns of the one before")
    func takeover() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let one = try await database.run(DeviceSessionStore.renewLease(gatewayID: "one", epoch: 0))
            let two = try await database.run(DeviceSessionStore.renewLease(gatewayID: "two", epoch: 0))
            let old = try await database.run(DeviceSessionStore.register(Self.session("d", on: "one", one)))
            let new = try await database.run(DeviceSessionStore.register(Self.session("d", on: "two", two)))
            #expect(new.connectionEpoch > old.connectionEpoch && new.supersededGatewayID == "one")
            // The old connection announces itself once more, too late.
            let again = try await database.run(
                DeviceSessionStore.register(Self.session("d", on: "one", one, connection: old.connectionEpoch)))
            #expect(again.connectionEpoch == 0 && again.hasLease)
            // Its end must not take the new one with it.
            try await database.run(
                DeviceSessionStore.close(
                    instanceID: Self.app, deviceID: DeviceID("d"), connectionEpoch: old.connectionEpoch))
            let present = try await database.run(DeviceSessionStore.presence(of: [Self.user]))
            #expect(present.map(\.gatewayID) == ["two"])
        }
    }

    @Test("the device that bound last owns the user; one that announces itself again does not take it back")
    func ownership() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            let first = try await database.run(DeviceSessionStore.register(Self.session("a", on: "g", lease)))
            _ = try await database.run(DeviceSessionStore.register(Self.session("b", on: "g", lease)))
            _ = try await database.run(
                DeviceSessionStore.register(
                    Self.session(
                        "a", on: "g", lease, connection: first.connectionEpoch, takesOwnership: false)))
            #expect(try await database.rows("SELECT device_id FROM owner", columns: 1) == [["b"]])
        }
    }

    @Test("channels of a session come with head and sync point; those that moved since are found by the sweep")
    func channels() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let lease = try await database.run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            let session = Self.session("d", on: "g", lease)
            _ = try await database.run(DeviceSessionStore.register(session))
            #expect(try await database.run(DeviceSessionStore.channels(of: session)).isEmpty)
            let pushed = try await database.run(OplogStore.append([Self.push("1"), Self.push("2")]))
            let states = try await database.run(DeviceSessionStore.channels(of: session))
            #expect(states.map(\.head.value) == [2] && states.map(\.channelID) == [pushed[0].channelID])
            func moved(_ gateway: String) async throws -> [Int64] {
                try await database.run(
                    DeviceSessionStore.movedChannels(gatewayID: gateway, window: .seconds(10))
                ).map(\.head.value)
            }
            #expect(try await moved("g") == [2])
            #expect(try await moved("another") == [])
            try await database.execute("UPDATE oplog SET created_at = created_at - interval '11 seconds'")
            #expect(try await moved("g") == [])
        }
    }
}
