import DeviceProtocol
import SwiftProtobuf

/// The first frame, the gateway's certificate, and the end of the program.
enum ClientConnectCases {
    static let all: [ClientCase] = [
        ClientCase("connect/first-frame", "Packets and their fields", firstFrame),
        ClientCase("connect/store-id", "A connection's life", storeID),
        ClientCase("connect/foreign-certificate", "Transport") { stage in
            try await expectDistrust(.foreign, stage)
        },
        ClientCase("connect/certificate-of-another-name", "Transport") { stage in
            try await expectDistrust(.misnamed, stage)
        },
        ClientCase("connect/again-after-a-cut", "Close codes") { stage in
            let session = try await stage.open()
            session.connection.cut()
            try await stage.expectService(of: try await stage.accept())
        },
        ClientCase("connect/ends-when-asked", "The program's contract") { stage in
            let session = try await stage.open()
            try await session.expectAlive()
            let isPrompt = await stage.program.stop()
            try Mismatch.unless(isPrompt, "an end within 5 s of SIGTERM", seen: "none")
        },
    ]

    private static func firstFrame(_ stage: ClientStage) async throws {
        try stage.start()
        let session = try await stage.next()
        let connect = session.connect
        try Mismatch.unless(
            session.connection.negotiated == "mss/1", "ALPN mss/1", seen: session.connection.negotiated ?? "no name")
        try Mismatch.unless(
            connect.protocolVersion >= 1 && connect.instanceID == ClientStage.instance
                && connect.deviceID == stage.device && (1...100).contains(connect.storeID.utf16.count)
                && !connect.storeID.utf8.contains(0) && connect.appVersion == ClientStage.appVersion,
            "correct version, instance, device, store and app version", seen: "\(connect)")
        try Mismatch.unless(
            connect.bind.bindNumber == 1 && connect.bind.userID == stage.user
                && connect.bind.sessionID == ClientStage.session && connect.bind.syncPoints.isEmpty
                && connect.syncPoints.isEmpty,
            "bind 1 of the user and session, without positions", seen: "\(connect)")
    }

    private static func storeID(_ stage: ClientStage) async throws {
        try stage.start()
        let first = try await stage.next()
        await stage.program.stop()
        try stage.start()
        let same = try await stage.next()
        try Mismatch.unless(
            first.connect.storeID == same.connect.storeID, "the same store_id after a restart",
            seen: "\(first.connect.storeID) and \(same.connect.storeID)")
        await stage.program.stop()
        try stage.start(store: "another")
        let other = try await stage.next()
        try Mismatch.unless(
            first.connect.storeID != other.connect.storeID, "a different store_id for each store",
            seen: "\(other.connect.storeID) twice")
    }

    private static func expectDistrust(
        _ certificate: TestAuthority.Certificate, _ stage: ClientStage
    ) async throws {
        let impostor = try await ScriptedGateway.start(stage.bench.authority, certificate)
        defer { for connection in impostor.connections { connection.cut() } }
        try stage.start(port: impostor.port)
        let deadline = ContinuousClock.now + .seconds(10)
        while impostor.connections.isEmpty, .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
        try Mismatch.unless(!impostor.connections.isEmpty, "an attempt to connect", seen: stage.program.lastErrorLines)
        try await Task.sleep(for: .seconds(1))
        try Mismatch.unless(
            impostor.connections.allSatisfy(\.packets.isEmpty), "no frame to a gateway with a wrong certificate",
            seen: impostor.connections[0].summary)
        await stage.program.stop()
        await impostor.stop()
    }
}
