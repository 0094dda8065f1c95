import DeviceProtocol
import SwiftProtobuf

/// What a client must do, case by case.
enum ClientCases {
    typealias Case = ConformanceCase<ClientStage>

    /// All of them. Those that wait longest come first, so that the others run beside them.
    static let all =
        slow + connecting + matrix + framing + batches + store + ladder + closing
        + secrets

    private static let rule = "A connection's life"

    private static let matrix: [Case] = ClientMatrix.rows.flatMap { row in
        let greeting = row.greeting.map { reaction in
            Case("matrix/greeting/\(row.name)", rule) { stage in
                try stage.start()
                let session = try await stage.next()
                session.connection.sendBytes(row.bytes)
                try await expect(reaction, of: session, on: stage)
                guard reaction != .ends else { return }
                session.accept()
                try await expectService(of: session, on: stage)
            }
        }
        let open = row.open.map { reaction in
            Case("matrix/open/\(row.name)", rule) { stage in
                let session = try await stage.open()
                session.connection.sendBytes(row.bytes)
                try await expect(reaction, of: session, on: stage)
                if reaction != .ends { try await expectService(of: session, on: stage) }
            }
        }
        return [greeting, open].compactMap { $0 }
    }

    private static func expect(
        _ reaction: ClientReaction, of session: ClientSession, on stage: ClientStage
    ) async throws {
        switch reaction {
        case .ignored: try await session.expectAlive()
        case .pong:
            _ = try await session.connection.find("Pong 7") { packets in
                packets.first { $0.body == .pong(.with { $0.number = 7 }) }
            }
        case .ends:
            let again = try await stage.expectReturn(after: session)
            try Mismatch.unless(
                session.acknowledged.isEmpty && again.position == 0, "nothing taken", seen: session.connection.summary)
        }
    }

    /// The device takes an oplog, acknowledges and shows it.
    static func expectService(of session: ClientSession, on stage: ClientStage) async throws {
        session.push(0, 1, [1])
        try await session.expectAcknowledged(1)
        try await stage.expectShown([1])
    }

    // MARK: Connecting

    static let connecting: [Case] = [
        Case("connect/first-frame", "Packets and their fields", firstFrame),
        Case("connect/store-id", rule, storeID),
        Case("connect/foreign-certificate", "Transport") { stage in
            try await expectDistrust(.foreign, stage)
        },
        Case("connect/certificate-of-another-name", "Transport") { stage in
            try await expectDistrust(.misnamed, stage)
        },
        Case("connect/again-after-a-cut", "Close codes") { stage in
            let session = try await stage.open()
            session.connection.cut()
            try await expectService(of: try await stage.accept(), on: stage)
        },
        Case("connect/ends-when-asked", "The program's contract") { stage in
            let session = try await stage.open()
            try await session.expectAlive()
            let isPrompt = await stage.program.stop()
            try Mismatch.unless(isPrompt, "an end within 5 s of SIGTERM", seen: "none")
        },
        Case("bind/refused", "Bind", refusedBind),
        Case("bind/late-frames", "Bind", lateFrames),
        Case("bind/another-user", "Bind", anotherUser),
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
            "version, instance, device, store and app version", seen: "\(connect)")
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
            first.connect.storeID != other.connect.storeID, "a store_id of its own for each store",
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
        try Mismatch.unless(!impostor.connections.isEmpty, "an attempt to connect", seen: stage.program.lastWords)
        try await Task.sleep(for: .seconds(1))
        try Mismatch.unless(
            impostor.connections.allSatisfy(\.packets.isEmpty), "no frame to a gateway with a wrong certificate",
            seen: impostor.connections[0].summary)
        await stage.program.stop()
        await impostor.stop()
    }

    private static func refusedBind(_ stage: ClientStage) async throws {
        try stage.start()
        let session = try await stage.next()
        session.connection.send(ClientSession.connected(), ClientSession.bindResult(accepted: false))
        session.push(0, 4, [4]) {
            $0.kind = .device
            $0.bindNumber = 0
        }
        try await session.expectAcknowledged(4)
        try await stage.expectShown([4])
    }

    private static func lateFrames(_ stage: ClientStage) async throws {
        let session = try await stage.open()
        for number: UInt32 in [0, 2, 4_000_000_000] { session.push(0, 3, [1, 2, 3]) { $0.bindNumber = number } }
        try await session.expectAlive()
        try await stage.expectStillShown([])
        try Mismatch.unless(
            session.acknowledged.isEmpty, "no acknowledgement of another bind's frames", seen: "\(session.acknowledged)"
        )
        try await expectService(of: session, on: stage)
    }

    private static func anotherUser(_ stage: ClientStage) async throws {
        let first = try await stage.open()
        first.push(0, 3, [1, 2, 3])
        try await first.expectAcknowledged(3)
        try await stage.expectShown([1, 2, 3])
        await stage.program.stop()
        try stage.start(user: "somebody-else")
        let other = try await stage.accept()
        try Mismatch.unless(
            other.connect.bind.userID == "somebody-else" && other.position == 0, "another user without positions",
            seen: "\(other.connect.bind)")
        other.push(0, 2, [2])
        try await other.expectAcknowledged(2)
        try await stage.expectShown([1, 2, 3, 2])
        await stage.program.stop()
        try stage.start()
        let back = try await stage.accept()
        try Mismatch.unless(back.position == 3, "position 3 of the first user", seen: "\(back.position)")
    }
}
