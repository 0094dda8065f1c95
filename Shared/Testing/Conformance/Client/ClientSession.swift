import DeviceProtocol
import NIOCore
import SwiftProtobuf

/// A connection on which the device has sent `Connect`, with the steps of scripts.
struct ClientSession: Sendable {
    let connection: FrameConnection
    /// The first frame.
    let connect: Mss_Device_V1_Connect

    /// Returns nil until the first frame has arrived.
    init?(_ connection: FrameConnection) {
        guard case .connect(let connect)? = connection.packets.first?.body else { return nil }
        self.connection = connection
        self.connect = connect
    }

    // MARK: Greeting

    /// Sends `Connected` and accepts the bind. From then on pings and reports are answered.
    func accept(_ more: (inout Mss_Device_V1_Connected) -> Void = { _ in }) {
        connection.respond(Self.answer)
        connection.sendBytes(FrameBytes.of([Self.connected(more), Self.bindResult()]))
    }

    /// The automatic replies of a gateway.
    static let answer: @Sendable (Mss_Device_V1_Packet) -> Mss_Device_V1_Packet? = { packet in
        switch packet.body {
        case .ping(let ping): .with { $0.pong.number = ping.number }
        case .confirmReport(let report): .with { $0.confirmRecorded.reportID = report.reportID }
        default: nil
        }
    }

    static func connected(_ more: (inout Mss_Device_V1_Connected) -> Void = { _ in }) -> Mss_Device_V1_Packet {
        .with {
            $0.connected.connectionID = "1"
            $0.connected.heartbeatSeconds = 60
            $0.connected.maxFrameBytes = 65_536
            $0.connected.serverTimeMs = 1_700_000_000_000
            $0.connected.firstResendMs = 10_000
            more(&$0.connected)
        }
    }

    static func bindResult(_ number: UInt32 = 1, accepted: Bool = true) -> Mss_Device_V1_Packet {
        .with {
            $0.bindResult.bindNumber = number
            $0.bindResult.accepted = accepted
        }
    }

    /// The reported position of the user's channel.
    var position: Int64 { connect.bind.syncPoints.first { $0.bizType == ClientCaseSetup.bizType }?.oplogID ?? 0 }

    // MARK: Pushing

    /// A batch of the user's channel with the texts `oplog <id>`.
    static func batch(
        _ after: Int64, _ upto: Int64, _ ids: [Int64], _ more: (inout Mss_Device_V1_ChannelBatch) -> Void = { _ in }
    ) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.bizType = ClientCaseSetup.bizType
            $0.bindNumber = 1
            $0.after = after
            $0.upto = upto
            $0.entries = ids.map { entry($0) }
            more(&$0)
        }
    }

    static func entry(_ id: Int64) -> Mss_Device_V1_Entry {
        .with {
            $0.oplogID = id
            $0.payload = .init("oplog \(id)".utf8)
            $0.thirdMessageID = "m\(id)"
            $0.createdAtMs = 1_700_000_000_000 + id
        }
    }

    /// A push frame.
    static func frame(_ batches: Mss_Device_V1_ChannelBatch...) -> Mss_Device_V1_Packet {
        .with { $0.push.batches = batches }
    }

    /// Pushes one batch of the user's channel.
    func push(
        _ after: Int64, _ upto: Int64, _ ids: [Int64], _ more: (inout Mss_Device_V1_ChannelBatch) -> Void = { _ in }
    ) { connection.send(Self.frame(Self.batch(after, upto, ids, more))) }

    /// Sends `Close` and closes the connection.
    func close(_ code: UInt32, _ more: (inout Mss_Device_V1_Close) -> Void = { _ in }) {
        let packet = Mss_Device_V1_Packet.with {
            $0.close.code = code
            $0.close.reason = "conformance"
            more(&$0.close)
        }
        let channel = connection.channel
        channel.writeAndFlush(ByteBuffer(bytes: FrameBytes.of([packet]))).whenComplete { _ in
            channel.close(promise: nil)
        }
    }

    // MARK: Waiting

    /// Acknowledged positions of the user's channel, in order.
    var acknowledged: [Int64] {
        connection.packets.flatMap(\.storedAck.channels).filter { $0.bizType == ClientCaseSetup.bizType }.map(\.upto)
    }

    /// Waits for this acknowledgement. Checks that no acknowledgement was higher or fell.
    func expectAcknowledged(_ upto: Int64) async throws {
        _ = try await connection.find("StoredAck \(upto)") { _ in acknowledged.last == upto ? true : nil }
        let seen = acknowledged
        try Mismatch.unless(
            seen == seen.sorted() && seen.allSatisfy { $0 <= upto }, "acknowledgements that rise up to \(upto)",
            seen: "\(seen)")
    }

    /// Checks that the device answers a ping. Then it has read all earlier frames and has not closed the connection.
    func expectAlive(_ number: UInt64 = 4_242) async throws {
        connection.send(.with { $0.ping.number = number })
        _ = try await connection.find("Pong \(number)") { packets in
            packets.first { $0.body == .pong(.with { $0.number = number }) }
        }
    }

    /// Confirmed ids of the user's channel.
    var confirmed: Set<Int64> { Set(reports.flatMap(\.channels).flatMap(\.oplogIds)) }

    /// Received reports.
    var reports: [Mss_Device_V1_ConfirmReport] {
        connection.packets.compactMap { if case .confirmReport(let report)? = $0.body { report } else { nil } }
    }

    /// Waits until these ids are confirmed.
    func expectConfirmed(_ ids: [Int64], within limit: Duration = .seconds(10)) async throws {
        _ = try await connection.find("ConfirmReport of \(ids)", within: limit) { _ in
            confirmed.isSuperset(of: ids) ? true : nil
        }
    }
}
