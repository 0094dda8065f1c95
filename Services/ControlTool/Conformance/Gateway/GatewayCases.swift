import DeviceProtocol
import SwiftProtobuf

/// What a gateway must do, case by case.
enum GatewayCases {
    typealias Case = ConformanceCase<GatewayTarget>

    /// All of them, in the order of the text.
    static let all = transport + matrix + framing + timers + identity + delivery + acknowledgement + flow + onDemand

    private static let rule = "A connection's life"

    private static let matrix: [Case] = GatewayMatrix.rows.flatMap { row in
        [
            Case("matrix/awaiting/\(row.name)", rule) { target in
                let connection = try await target.connect()
                connection.sendBytes(row.bytes(target.fresh()))
                try await expect(row.awaiting, on: connection)
            },
            Case("matrix/opening/\(row.name)", rule) { target in
                // Both frames in one write: the registration cannot be over when the second is read.
                let connection = try await target.connect()
                let identity = target.fresh()
                var connect = identity.connect
                connect.connect.bind = identity.bind(1)
                connection.sendBytes(FrameBytes.of([connect]) + row.bytes(identity))
                try await expect(row.opening, on: connection)
            },
            Case("matrix/open/\(row.name)", rule) { target in
                let device = try await target.open(target.fresh())
                device.connection.sendBytes(row.bytes(device.identity))
                try await expect(row.open, on: device.connection)
            },
        ]
    }

    /// Waits for a reaction, and that nothing contradicts it.
    static func expect(_ reaction: GatewayReaction, on connection: FrameConnection) async throws {
        switch reaction {
        case .close(let code): try await expectClose(code, on: connection)
        case .ends:
            try await connection.expectEnd()
            let codes = closeCodes(connection)
            try Mismatch.unless(codes.allSatisfy { $0 == 1000 }, "no Close or Close 1000", seen: connection.summary)
        case .ignored: try await expectAlive(connection)
        case .opens:
            try await expectBody("Connected", on: connection) { if case .connected = $0 { true } else { false } }
        case .binds:
            let bound = Mss_Device_V1_BindResult.with {
                $0.bindNumber = 2
                $0.accepted = true
            }
            try await expectBody("BindResult 2 accepted", on: connection) { $0 == .bindResult(bound) }
        case .pong: try await expectBody("Pong 7", on: connection) { $0 == .pong(.with { $0.number = 7 }) }
        case .recorded:
            try await expectBody("ConfirmRecorded 7", on: connection) {
                $0 == .confirmRecorded(.with { $0.reportID = 7 })
            }
        case .page: try await expectPage(on: connection)
        }
    }

    /// The gateway closes with this code, says nothing more, and ends the connection.
    static func expectClose(
        _ code: UInt32, on connection: FrameConnection, within limit: Duration = .seconds(5)
    ) async throws {
        try await connection.expectEnd("Close \(code) and the end of the connection", within: limit)
        try Mismatch.unless(closeCodes(connection) == [code], "Close \(code)", seen: connection.summary)
        guard case .close? = connection.packets.last?.body else {
            throw Mismatch(expected: "Close as the last frame", seen: connection.summary)
        }
    }

    private static func closeCodes(_ connection: FrameConnection) -> [UInt32] {
        connection.packets.compactMap { if case .close(let close)? = $0.body { close.code } else { nil } }
    }

    private static func expectAlive(_ connection: FrameConnection) async throws {
        connection.send(.with { $0.ping.number = 4_242 })
        try await expectBody("Pong and no Close", on: connection) { $0 == .pong(.with { $0.number = 4_242 }) }
    }

    private static func expectBody(
        _ expected: String, on connection: FrameConnection,
        _ isIt: (Mss_Device_V1_Packet.OneOf_Body) -> Bool
    ) async throws {
        _ = try await connection.find(expected) { packets in packets.first { $0.body.map(isIt) ?? false } }
    }

    /// A gateway that ignores requests is one of before they were in the text.
    private static func expectPage(on connection: FrameConnection) async throws {
        connection.send(.with { $0.ping.number = 4_242 })
        try await expectBody("Pong", on: connection) { $0 == .pong(.with { $0.number = 4_242 }) }
        let pages: ([Mss_Device_V1_Packet]) -> Bool? = { packets in
            packets.contains { $0.historyPage.requestNumber == 7 || $0.summaryPage.requestNumber == 7 } ? true : nil
        }
        do {
            _ = try await connection.find("a page", within: .seconds(3), pages)
        } catch is Mismatch where !connection.isEnded {
            throw NotSupported("the gateway ignores the request")
        }
    }
}
