import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Selection of devices for a wake-up", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct PushTokenStoreTests {
    private static let app = InstanceID("app")

    /// Devices and pushes of one database, with a gateway that holds a lease.
    private struct Scene {
        let database: TestDatabase
        let lease: Int64

        /// Connects a device, with a push token when `token` is not nil.
        func connect(_ device: String, user: String = "u", token: String?, number: UInt64 = 1) async throws -> Int64 {
            let registration = DeviceSessionStore.Registration(
                gatewayID: "g", gatewayEpoch: lease, instanceID: app, deviceID: DeviceID(device),
                storeID: StoreID("s"), userID: UserID(user),
                traits: DeviceTraits(operatingSystem: nil, appVersion: "1.0", slot: DeviceSlot(number: 0)),
                isForeground: true, connectionNumber: number, registrationNumber: number, connectionEpoch: 0,
                takesOwnership: true, verdictMilliseconds: 0, suspended: [],
                pushToken: token.map { PushToken(provider: .fcm, text: $0) })
            let answers = try await database.asDelivery { writer in
                try writer.perform([.open(registration, sessionDigest: [])])[0].get()
            }
            guard case .opened(let opened) = answers else { return 0 }
            return opened.registered.connectionEpoch
        }

        func disconnect(_ device: String, _ epoch: Int64) async throws {
            try await database.run(
                DeviceSessionStore.close(instanceID: app, deviceID: DeviceID(device), connectionEpoch: epoch))
        }

        func visit(_ device: String, user: String = "u", token: String?, number: UInt64 = 1) async throws {
            try await disconnect(
                device, try await connect(device, user: user, token: token, number: number))
        }

        func push(_ key: String, to user: String = "u") async throws -> OplogStore.Appended {
            let target = TargetAddress(instanceID: app, kind: .user, target: user)
            let oplog = Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [1], isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true)
            return try await database.append([
                OplogStore.Append(address: ChannelAddress(target: target, bizType: BizType("B")), oplog: oplog)
            ])[0]
        }

        /// The tokens of the devices to wake now.
        func claim(
            ackTimeout: Duration = .seconds(20), interval: Duration = .seconds(1_200)
        ) async throws -> Set<String> {
            Set(
                try await database.runAsNotifier(
                    PushTokenStore.claim(ackTimeout: ackTimeout, interval: interval, reach: .seconds(600), limit: 100)
                ).map(\.token.text))
        }

        func recordWoken(_ tokens: [String]) async throws {
            try await database.runAsNotifier(
                PushTokenStore.recordWoken(tokens.map { PushToken(provider: .fcm, text: $0) }))
        }
    }

    private static func with(isMultiDevice: Bool = true, _ body: @Sendable (Scene) async throws -> Void) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure(isMultiDevice: isMultiDevice)
            let lease = try await databases[0].run(DeviceSessionStore.renewLease(gatewayID: "g", epoch: 0))
            try await body(Scene(database: databases[0], lease: lease.epoch))
        }
    }

    @Test(
        "a disconnected device is claimed; connected devices, other users' devices, and those without a token are not")
    func away() async throws {
        try await Self.with { scene in
            try await scene.visit("away", token: "t-away")
            _ = try await scene.connect("here", token: "t-here")
            try await scene.visit("other", user: "v", token: "t-other")
            try await scene.visit("dumb", token: nil)
            #expect(try await scene.claim().isEmpty, "nothing is stored")
            _ = try await scene.push("1")
            #expect(try await scene.claim() == ["t-away"])
        }
    }

    @Test("a connect with a token reads no other sessions, also with a plan for an empty table")
    func connectBesideMany() async throws {
        try await Self.with { scene in
            let database = scene.database
            try await database.executeAsWriter(SyncDatabase.plannerSettings)
            // The statement is planned with this call, and the table is empty after it.
            try await scene.visit("d", token: "t")
            try await database.addSessions(2_000, on: "g", scene.lease)
            let before = try await database.rowsReadByNow(from: "device_session")
            #expect(try await scene.connect("d", token: "t", number: 2) > 0)
            #expect(try await database.rowsReadByNow(from: "device_session") - before <= 10)
        }
    }

    @Test("a burst is one claim; a woken device is left alone until it connects, or the interval is over")
    func burst() async throws {
        try await Self.with { scene in
            try await scene.visit("d", token: "t")
            _ = try await scene.push("1")
            #expect(try await scene.claim() == ["t"])
            _ = try await scene.push("2")
            #expect(try await scene.claim().isEmpty, "another notifier holds the claim")
            try await scene.recordWoken(["t"])
            _ = try await scene.push("3")
            #expect(try await scene.claim(ackTimeout: .zero).isEmpty)
            #expect(try await scene.claim(ackTimeout: .zero, interval: .zero) == ["t"])
            try await scene.recordWoken(["t"])
            try await scene.visit("d", token: "t", number: 2)
            _ = try await scene.push("4")
            #expect(try await scene.claim() == ["t"])
        }
    }

    @Test("a notifier that dies after its claim, and a half-open connection, cost the waiting time and no more")
    func lostClaims() async throws {
        try await Self.with { scene in
            _ = try await scene.connect("asleep", token: "t")
            _ = try await scene.push("1")
            #expect(try await scene.claim().isEmpty)
            for _ in 0..<2 {
                try await eventually("it is claimed", within: .seconds(10)) {
                    try await scene.claim(ackTimeout: .milliseconds(200)) == ["t"]
                }
            }
        }
    }

    @Test("an acknowledged or recalled push, or one of another owner, wakes no device") func notNeeded() async throws {
        try await Self.with(isMultiDevice: false) { scene in
            try await scene.visit("former", token: "t-former")
            try await scene.visit("owner", token: "t-owner")
            let first = try await scene.push("1")
            #expect(try await scene.claim() == ["t-owner"])
            let advance = SyncPointStore.Advance(
                channelID: first.channelID, deviceID: "", storeID: "", upto: first.oplogID, storedBy: "owner")
            try await scene.database.run(SyncPointStore.advance([advance]))
            #expect(try await scene.claim(ackTimeout: .zero).isEmpty)
            _ = try await scene.push("2")
            try await scene.database.execute("UPDATE oplog SET payload = NULL WHERE third_message_id = '2'")
            #expect(try await scene.claim(ackTimeout: .zero).isEmpty)
        }
    }

    @Test("a token that is unregistered, withdrawn, or another device's by now is removed")
    func forgotten() async throws {
        try await Self.with { scene in
            func tokens() async throws -> [[String?]] {
                try await scene.database.rows("SELECT device_id, token FROM push_token ORDER BY 1", columns: 2)
            }
            try await scene.visit("d", token: "t")
            try await scene.visit("e", token: "t")
            #expect(try await tokens() == [["e", "t"]])
            try await scene.visit("e", token: "", number: 2)
            #expect(try await tokens().isEmpty)
            try await scene.visit("e", token: "t2", number: 3)
            try await scene.visit("f", token: "t3")
            try await scene.database.runAsNotifier(PushTokenStore.forget([PushToken(provider: .fcm, text: "t2")]))
            #expect(try await tokens() == [["f", "t3"]])
        }
    }
}
