import DeviceProtocol
import SwiftProtobuf

/// Waits for the reactions of a gateway.
extension FrameConnection {
    /// Waits for a reaction, and checks that no frame contradicts it.
    func expect(_ reaction: GatewayReaction) async throws {
        switch reaction {
        case .close(let code): try await expectClose(code)
        case .ends:
            try await expectEnd()
            try Mismatch.unless(closeCodes.allSatisfy { $0 == 1000 }, "no Close or Close 1000", seen: summary)
        case .ignored: try await expectPong()
        case .opens:
            try await expectBody("Connected") { if case .connected = $0 { true } else { false } }
        case .binds:
            let bound = Mss_Device_V1_BindResult.with {
                $0.bindNumber = 2
                $0.accepted = true
            }
            try await expectBody("BindResult 2 accepted") { $0 == .bindResult(bound) }
        case .pong: try await expectBody("Pong 7") { $0 == .pong(.with { $0.number = 7 }) }
        case .recorded:
            try await expectBody("ConfirmRecorded 7") { $0 == .confirmRecorded(.with { $0.reportID = 7 }) }
        case .page: try await expectPage()
        }
    }

    /// Checks that the gateway sends `Close` with this code as its last frame, and ends the connection.
    func expectClose(_ code: UInt32, within limit: Duration = .seconds(5)) async throws {
        try await expectEnd("Close \(code) and the end of the connection", within: limit)
        try Mismatch.unless(closeCodes == [code], "Close \(code)", seen: summary)
        guard case .close? = packets.last?.body else {
            throw Mismatch(expected: "Close as the last frame", seen: summary)
        }
    }

    private var closeCodes: [UInt32] {
        packets.compactMap { if case .close(let close)? = $0.body { close.code } else { nil } }
    }

    private func expectPong() async throws {
        send(.with { $0.ping.number = 4_242 })
        try await expectBody("Pong and no Close") { $0 == .pong(.with { $0.number = 4_242 }) }
    }

    private func expectBody(
        _ expected: String, _ isIt: (Mss_Device_V1_Packet.OneOf_Body) -> Bool
    ) async throws {
        _ = try await find(expected) { packets in packets.first { $0.body.map(isIt) ?? false } }
    }

    /// A gateway that ignores the requests implements an older version of the protocol.
    private func expectPage() async throws {
        send(.with { $0.ping.number = 4_242 })
        try await expectBody("Pong") { $0 == .pong(.with { $0.number = 4_242 }) }
        let pages: ([Mss_Device_V1_Packet]) -> Bool? = { packets in
            packets.contains { $0.historyPage.requestNumber == 7 || $0.summaryPage.requestNumber == 7 } ? true : nil
        }
        do {
            _ = try await find("a page", within: .seconds(3), pages)
        } catch is Mismatch where !isEnded {
            throw NotSupported("the gateway ignores the request")
        }
    }
}
