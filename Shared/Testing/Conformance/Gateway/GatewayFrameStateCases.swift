import DeviceProtocol
import SwiftProtobuf

/// The gateway's table of DeviceProtocol.md, "A connection's life": every frame in every state that a device can reach.
enum GatewayFrameStateCases {
    /// A frame and the reaction in each state.
    struct Row: Sendable {
        let name: String
        /// The encoded frame.
        let bytes: @Sendable (DeviceIdentity) -> [UInt8]
        let awaiting: GatewayReaction
        let opening: GatewayReaction
        let open: GatewayReaction
    }

    static let rows = connects + binds + deviceBodies + otherBodies + broken

    private static let rule = "A connection's life"

    /// The cases of all rows and states.
    static let cases: [GatewayCase] = rows.flatMap { row in
        [
            GatewayCase("matrix/awaiting/\(row.name)", rule) { target in
                let connection = try await target.connect()
                connection.sendBytes(row.bytes(target.fresh()))
                try await connection.expect(row.awaiting)
            },
            GatewayCase("matrix/opening/\(row.name)", rule) { target in
                // Both frames are in one write, so the gateway reads the second one before the registration is
                // complete.
                let connection = try await target.connect()
                let identity = target.fresh()
                var connect = identity.connect
                connect.connect.bind = identity.bind(1)
                connection.sendBytes(FrameBytes.of([connect]) + row.bytes(identity))
                try await connection.expect(row.opening)
            },
            GatewayCase("matrix/open/\(row.name)", rule) { target in
                let device = try await target.open(target.fresh())
                device.connection.sendBytes(row.bytes(device.identity))
                try await device.connection.expect(row.open)
            },
        ]
    }

    private static func row(
        _ name: String, _ awaiting: GatewayReaction, _ opening: GatewayReaction, _ open: GatewayReaction,
        _ fill: @escaping @Sendable (inout Mss_Device_V1_Packet, DeviceIdentity) -> Void
    ) -> Row {
        Row(
            name: name,
            bytes: { identity in
                var packet = Mss_Device_V1_Packet()
                fill(&packet, identity)
                return FrameBytes.of([packet])
            }, awaiting: awaiting, opening: opening, open: open)
    }

    /// A row with close code 5000 before `Connect`, and the same reaction in both other states.
    private static func row(
        _ name: String, _ opened: GatewayReaction,
        _ fill: @escaping @Sendable (inout Mss_Device_V1_Packet, DeviceIdentity) -> Void
    ) -> Row { row(name, .close(5000), opened, opened, fill) }

    private static let connects: [Row] = [
        row("connect", .opens, .close(5000), .close(5000)) { $0 = $1.connect },
        row("connect-without-version", .close(5000)) {
            $0 = $1.connect
            $0.connect.protocolVersion = 0
        },
        row("connect-with-bad-id", .close(5000)) {
            $0 = $1.connect
            $0.connect.deviceID = ""
        },
        row("connect-of-unknown-instance", .close(5001), .close(5000), .close(5000)) {
            $0 = $1.connect
            $0.connect.instanceID = "no_such_instance"
        },
    ]

    private static let binds: [Row] = [
        row("bind", .binds) { $0 = $1.bindFrame(2) },
        row("bind-same-number", .close(5000)) { $0 = $1.bindFrame(1) },
        row("bind-number-0", .close(5000)) { $0 = $1.bindFrame(0) },
        row("bind-with-long-id", .close(5000)) {
            $0 = $1.bindFrame(2)
            $0.bind.userID = String(repeating: "u", count: 101)
        },
    ]

    private static let deviceBodies: [Row] = [
        row("stored-ack", .ignored) { packet, _ in packet.storedAck.channels = [.with { $0.upto = 1 }] },
        row("confirm-report", .close(5000), .ignored, .recorded) { packet, _ in packet.confirmReport.reportID = 7 },
        row("foreground", .ignored) { packet, _ in packet.foreground.foreground = true },
        row("subscriptions", .ignored) { packet, _ in packet.subscriptions.suspended = ["NO-SUCH"] },
        row("history-request", .page) { packet, _ in
            packet.historyRequest.requestNumber = 7
            packet.historyRequest.bizType = "NO-SUCH"
            packet.historyRequest.bindNumber = 1
            packet.historyRequest.count = 1
        },
        row("summary-request", .page) { packet, _ in
            packet.summaryRequest.requestNumber = 7
            packet.summaryRequest.bindNumber = 1
            packet.summaryRequest.count = 1
        },
        row("ping", .pong) { packet, _ in packet.ping.number = 7 },
        row("pong", .ignored) { packet, _ in packet.pong.number = 7 },
        row("close", .ends) { packet, _ in packet.close.code = 1000 },
    ]

    private static let otherBodies: [Row] = [
        row("connected", .ignored) { packet, _ in packet.connected.heartbeatSeconds = 1 },
        row("bind-result", .ignored) { packet, _ in packet.bindResult.bindNumber = 1 },
        row("push", .ignored) { packet, _ in packet.push.batches = [.with { $0.upto = 1 }] },
        row("confirm-recorded", .ignored) { packet, _ in packet.confirmRecorded.reportID = 1 },
        row("caught-up", .ignored) { packet, _ in packet.caughtUp.bindNumber = 1 },
        row("session-state", .ignored) { packet, _ in packet.sessionState.validity = .invalid },
        row("history-page", .ignored) { packet, _ in packet.historyPage.requestNumber = 1 },
        row("summary-page", .ignored) { packet, _ in packet.summaryPage.requestNumber = 1 },
        row("ownership-taken", .ignored) { packet, _ in packet.ownershipTaken.bindNumber = 1 },
        Row(
            name: "unknown-body",
            bytes: { _ in FrameBytes.frame(FrameBytes.field(FrameBytes.unknownField, [1, 2, 3])) },
            awaiting: .close(5000), opening: .ignored, open: .ignored),
    ]

    private static let broken: [Row] =
        [
            Row(
                name: "over-the-limit",
                // The gateway needs the first bytes of the body, because a frame of operations can be longer.
                bytes: { _ in FrameBytes.length(65_537) + FrameBytes.field(FrameBytes.unknownField, [1, 2, 3]) },
                awaiting: .close(5000), opening: .close(5000), open: .close(5000))
        ]
        + FrameBytes.garbage.map { garbage in
            Row(
                name: "garbage-\(garbage.name)", bytes: { _ in FrameBytes.frame(garbage.message) },
                awaiting: .close(5000), opening: .close(5000), open: .close(5000))
        }
}
