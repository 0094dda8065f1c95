import DeviceProtocol
import SwiftProtobuf

/// The first frame, the gateway's certificate, and the end of the program.
enum ClientConnectCases {
    static let all: [ClientCase] = [
        ClientCase("connect/first-frame", "Packets and their fields", firstFrame),
        ClientCase("connect/store-id", "A connection's life", storeID),
        ClientCase("connect/foreign-certificate", "Transport") { setup in
            try await expectDistrust(.foreign, setup)
        },
        ClientCase("connect/certificate-of-another-name", "Transport") { setup in
            try await expectDistrust(.misnamed, setup)
        },
        ClientCase("connect/again-after-a-cut", "Close codes") { setup in
            let session = try await setup.open()
            session.connection.cut()
            try await setup.expectService(of: try await setup.accept())
        },
        ClientCase("connect/ends-when-asked", "The program's contract") { setup in
            let session = try await setup.open()
            try await session.expectAlive()
            let isPrompt = await setup.program.stop()
            try Mismatch.unless(isPrompt, "an end within 5 s of SIGTERM", seen: "none")
        },
    ]

    private static func firstFrame(_ setup: ClientCaseSetup) async throws {
        try setup.start()
        let session = try await setup.next()
        let connect = session.connect
        try Mismatch.unless(
            session.connection.negotiated == "mss/1", "ALPN mss/1", seen: session.connection.negotiated ?? "no name")
        try Mismatch.unless(
            connect.protocolVersion >= 1 && connect.instanceID == ClientCaseSetup.instance
                && connect.deviceID == setup.device && (1...100).contains(connect.storeID.utf16.count)
                && !connect.storeID.utf8.contains(0) && connect.appVersion == ClientCaseSetup.appVersion,
            "correct version, instance, device, store and app version", seen: "\(connect)")
        try Mismatch.unless(
            connect.bind.bindNumber == 1 && connect.bind.userID == setup.user
                && connect.bind.sessionID == ClientCaseSetup.session && connect.bind.syncPoints.isEmpty
                && connect.syncPoints.isEmpty,
            "bind 1 of the user and session, without positions", seen: "\(connect)")
    }

    private static func storeID(_ setup: ClientCaseSetup) async throws {
        try setup.start()
        let first = try await setup.next()
        await setup.program.stop()
        try setup.start()
        let same = try await setup.next()
        try Mismatch.unless(
            first.connect.storeID == same.connect.storeID, "the same store_id after a restart",
            seen: "\(first.connect.storeID) and \(same.connect.storeID)")
        await setup.program.stop()
        try setup.start(store: "another")
        let other = try await setup.next()
        try Mismatch.unless(
            first.connect.storeID != other.connect.storeID, "a different store_id for each store",
            seen: "\(other.connect.storeID) twice")
    }

    private static func expectDistrust(
        _ certificate: TestAuthority.Certificate, _ setup: ClientCaseSetup
    ) async throws {
        let impostor = try await ScriptedGateway.start(setup.bench.authority, certificate)
        defer { for connection in impostor.connections { connection.cut() } }
        try setup.start(port: impostor.port)
        let deadline = ContinuousClock.now + .seconds(10)
        while impostor.connections.isEmpty, .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
        try Mismatch.unless(!impostor.connections.isEmpty, "an attempt to connect", seen: setup.program.lastErrorLines)
        // Time in which a client that accepts any certificate would send its Connect.
        try await Task.sleep(for: .seconds(1))
        try Mismatch.unless(
            impostor.connections.allSatisfy(\.packets.isEmpty), "no frame to a gateway with a wrong certificate",
            seen: impostor.connections[0].summary)
        await setup.program.stop()
        await impostor.stop()
    }
}
