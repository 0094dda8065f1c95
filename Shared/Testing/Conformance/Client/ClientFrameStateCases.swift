import DeviceProtocol
import SwiftProtobuf

/// The device's table of DeviceProtocol.md, "A connection's life": every frame in the states greeting and open.
enum ClientFrameStateCases {
    /// A frame and the reaction in each state. The value is nil if another case checks that state.
    struct Row: Sendable {
        let name: String
        /// The encoded frame.
        let bytes: [UInt8]
        let greeting: ClientReaction?
        let open: ClientReaction?
    }

    static let rows = gatewayBodies + deviceBodies + broken

    private static let rule = "A connection's life"

    /// The cases of all rows and states.
    static let cases: [ClientCase] = rows.flatMap { row in
        let greeting = row.greeting.map { reaction in
            ClientCase("matrix/greeting/\(row.name)", rule) { setup in
                try setup.start()
                let session = try await setup.next()
                session.connection.sendBytes(row.bytes)
                try await expect(reaction, of: session, on: setup)
                guard reaction != .ends else { return }
                session.accept()
                try await setup.expectService(of: session)
            }
        }
        let open = row.open.map { reaction in
            ClientCase("matrix/open/\(row.name)", rule) { setup in
                let session = try await setup.open()
                session.connection.sendBytes(row.bytes)
                try await expect(reaction, of: session, on: setup)
                if reaction != .ends { try await setup.expectService(of: session) }
            }
        }
        return [greeting, open].compactMap { $0 }
    }

    private static func expect(
        _ reaction: ClientReaction, of session: ClientSession, on setup: ClientCaseSetup
    ) async throws {
        switch reaction {
        case .ignored: try await session.expectAlive()
        case .pong:
            _ = try await session.connection.find("Pong 7") { packets in
                packets.first { $0.body == .pong(.with { $0.number = 7 }) }
            }
        case .ends:
            let again = try await setup.expectReturn(after: session)
            try Mismatch.unless(
                session.acknowledged.isEmpty && again.position == 0, "no data accepted",
                seen: session.connection.summary)
        }
    }

    private static func row(
        _ name: String, _ greeting: ClientReaction?, _ open: ClientReaction?,
        _ fill: (inout Mss_Device_V1_Packet) -> Void
    ) -> Row { Row(name: name, bytes: FrameBytes.of([.with(fill)]), greeting: greeting, open: open) }

    private static let gatewayBodies: [Row] = [
        Row(name: "connected", bytes: FrameBytes.of([ClientSession.connected()]), greeting: nil, open: .ends),
        Row(
            name: "push", bytes: FrameBytes.of([ClientSession.frame(ClientSession.batch(0, 1, [1]))]), greeting: .ends,
            open: nil),
        row("bind-result-of-another-bind", .ignored, .ignored) { $0 = ClientSession.bindResult(7, accepted: false) },
        row("confirm-recorded-of-another-report", .ignored, .ignored) { $0.confirmRecorded.reportID = UInt64.max },
        row("caught-up-of-another-bind", .ignored, .ignored) { $0.caughtUp.bindNumber = 7 },
        row("caught-up", .ignored, .ignored) { $0.caughtUp.bindNumber = 1 },
        row("session-state-of-another-bind", .ignored, .ignored) {
            $0.sessionState.bindNumber = 7
            $0.sessionState.validity = .invalid
        },
        row("session-state-unknown-value", .ignored, .ignored) {
            $0.sessionState.bindNumber = 1
            $0.sessionState.validity = .UNRECOGNIZED(77)
        },
        row("history-page-of-no-request", .ignored, .ignored) { $0.historyPage.requestNumber = 99 },
        row("summary-page-of-no-request", .ignored, .ignored) { $0.summaryPage.requestNumber = 99 },
        row("ownership-taken-of-another-bind", .ignored, .ignored) { $0.ownershipTaken.bindNumber = 7 },
        row("ownership-taken", .ignored, .ignored) { $0.ownershipTaken.bindNumber = 1 },
        row("ping", .pong, .pong) { $0.ping.number = 7 },
        row("pong", .ignored, .ignored) { $0.pong.number = 99 },
        row("empty-push", nil, .ignored) { $0.push = .init() },
    ]

    private static let deviceBodies: [Row] = [
        row("connect", .ignored, .ignored) { $0.connect.protocolVersion = 1 },
        row("bind", .ignored, .ignored) { $0.bind.bindNumber = 9 },
        row("stored-ack", .ignored, .ignored) { $0.storedAck.channels = [.with { $0.upto = 9 }] },
        row("confirm-report", .ignored, .ignored) { $0.confirmReport.reportID = 9 },
        row("foreground", .ignored, .ignored) { $0.foreground.foreground = true },
        row("subscriptions", .ignored, .ignored) { $0.subscriptions.suspended = [ClientCaseSetup.bizType] },
        row("history-request", .ignored, .ignored) { $0.historyRequest.requestNumber = 9 },
        row("summary-request", .ignored, .ignored) { $0.summaryRequest.requestNumber = 9 },
    ]

    private static let broken: [Row] =
        [
            Row(
                name: "unknown-body", bytes: FrameBytes.frame(FrameBytes.field(FrameBytes.unknownField, [1, 2])),
                greeting: .ignored, open: .ignored),
            Row(name: "zero-length", bytes: FrameBytes.length(0), greeting: .ignored, open: .ignored),
            Row(name: "over-the-limit", bytes: FrameBytes.length(1_048_577), greeting: .ends, open: .ends),
        ]
        + FrameBytes.garbage.map { garbage in
            Row(
                name: "garbage-\(garbage.name)", bytes: FrameBytes.frame(garbage.message), greeting: .ends, open: .ends)
        }
}
