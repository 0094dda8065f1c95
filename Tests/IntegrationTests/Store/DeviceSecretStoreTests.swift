import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite(
    "SEC9: device ids that belong to secrets", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct DeviceSecretStoreTests {
    private static let app = InstanceID("app")
    private static let user = TargetAddress(instanceID: app, kind: .user, target: "u")
    private static let channel = ChannelAddress(target: user, bizType: BizType("B"))

    /// - Parameter secret: nil: the instance does not bind device ids; empty: no secret in the Connect.
    private static func session(
        _ device: String, on gateway: String, _ lease: Int64, secret: [UInt8]?, connection: Int64 = 0
    ) -> Query<DeviceSessionStore.Registered> {
        DeviceSessionStore.register(
            DeviceSessionStore.Registration(
                gatewayID: gateway, gatewayEpoch: lease, instanceID: app, deviceID: DeviceID(device),
                storeID: StoreID("s"), userID: UserID("u"),
                traits: DeviceTraits(operatingSystem: nil, appVersion: "1.0", slot: DeviceSlot(number: 0)),
                isForeground: true,
                connectionNumber: 1, registrationNumber: 1, connectionEpoch: connection, takesOwnership: true,
                verdictMilliseconds: 0,
                suspended: [],
                secretDigest: secret))
    }

    private static func with(_ body: @Sendable ([TestDatabase], Int64) async throws -> Void) async throws {
        try await TestDatabase.with(connections: 2) { databases in
            try await databases[0].configure()
            let lease = try await databases[0].run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            try await body(databases, lease.epoch)
        }
    }

    @Test("SEC9: the first secret gets the id; another secret, or none, changes nothing for the rightful device")
    func wrongSecret() async throws {
        try await Self.with { databases, lease in
            let database = databases[0]
            let first = try await database.run(Self.session("d", on: "g", lease, secret: [1]))
            #expect(first.connectionEpoch > 0 && !first.isWrongSecret && first.ownsUser)
            for wrong in [[2], []] as [[UInt8]] {
                let refused = try await database.run(Self.session("d", on: "g", lease, secret: wrong))
                #expect(refused.isWrongSecret && refused.connectionEpoch == 0 && refused.supersededGatewayID == nil)
            }
            let present = try await database.run(DeviceSessionStore.presence(of: [Self.channel]))
            #expect(present.map(\.isOwner) == [true])
            let again = try await database.run(
                Self.session("d", on: "g", lease, secret: [1], connection: first.connectionEpoch))
            #expect(again.connectionEpoch == first.connectionEpoch, "there is no newer connection in between")
            #expect(try await database.rows("SELECT device_id FROM device_secret", columns: 1) == [["d"]])
        }
    }

    @Test("SEC9: an unknown id without a secret is refused; where ids are not bound, secrets are ignored")
    func unbound() async throws {
        try await Self.with { databases, lease in
            #expect(try await databases[0].run(Self.session("d", on: "g", lease, secret: [])).isWrongSecret)
            #expect(try await databases[0].run(Self.session("d", on: "g", lease, secret: nil)).connectionEpoch > 0)
            _ = try await databases[0].run(Self.session("d", on: "g", lease, secret: [1]))
            #expect(try await databases[0].run(Self.session("d", on: "g", lease, secret: nil)).connectionEpoch > 0)
        }
    }

    @Test("SEC9: of two first connections at once, one gets the id") func race() async throws {
        try await Self.with { databases, lease in
            for round in 0..<20 {
                async let left = databases[0].run(Self.session("d\(round)", on: "g", lease, secret: [1]))
                async let right = databases[1].run(Self.session("d\(round)", on: "g", lease, secret: [2]))
                let outcomes = try await [left.isWrongSecret, right.isWrongSecret]
                #expect(Set(outcomes) == [true, false])
            }
        }
    }

    @Test("SEC9: a released id goes to the next device, and the record names the operator")
    func release() async throws {
        try await Self.with { databases, lease in
            let database = databases[0]
            _ = try await database.run(Self.session("d", on: "g", lease, secret: [1]))
            let release = DeviceSecretStore.release(DeviceID("d"), of: Self.app, by: "ann")
            #expect(try await database.run(release).version != nil)
            #expect(try await database.run(release) == .refused, "none is on record")
            let record = try #require(try await database.run(RecordStore.page(RecordFilter(), limit: 1)).records.first)
            #expect(record.actor == "ann" && record.action == .releaseDevice && record.subject == "d")
            #expect(try await database.run(Self.session("d", on: "g", lease, secret: [2])).connectionEpoch > 0)
            #expect(try await database.run(Self.session("d", on: "g", lease, secret: [1])).isWrongSecret)
        }
    }
}
