package import DeviceProtocol
package import NIOCore
import NIOSSL
import NIOTLS
import SwiftProtobuf
import Synchronization

/// One end of a TLS connection. It stores every received frame and sends the frames of a script, well-formed or not.
package final class FrameConnection: Sendable {
    package typealias Packet = Mss_Device_V1_Packet

    /// A received frame and its time.
    package struct Frame: Sendable {
        package let packet: Packet
        package let at: ContinuousClock.Instant
    }

    private struct State: Sendable {
        var frames: [Frame] = []
        var isReady = false
        var negotiated: String?
        var fault: String?
        var endedAt: ContinuousClock.Instant?
        var responder: (@Sendable (Packet) -> Packet?)?
    }

    /// Interval at which a waiting script checks its condition.
    private static let lookEvery = Duration.milliseconds(5)

    package let channel: any Channel
    /// Time at which the connection was opened.
    package let startedAt = ContinuousClock.now
    private let state: Mutex<State>

    private init(_ channel: any Channel, responder: (@Sendable (Packet) -> Packet?)?) {
        self.channel = channel
        state = Mutex(State(responder: responder))
    }

    /// Adds the codec and the inbox to the pipeline of a channel, in the channel's initializer.
    ///
    /// - Parameters:
    /// - tls: the TLS handler. The value is nil for a connection without TLS.
    /// - maxBytes: the largest accepted frame.
    /// - responder: returns the reply to a frame. The value is nil for no replies.
    package static func install(
        on channel: any Channel, tls: (any ChannelHandler)?, maxBytes: Int,
        responder: (@Sendable (Packet) -> Packet?)? = nil
    ) throws -> FrameConnection {
        let connection = FrameConnection(channel, responder: responder)
        let pipeline = channel.pipeline.syncOperations
        if let tls { try pipeline.addHandler(tls) }
        try pipeline.addHandler(ByteToMessageHandler(PacketDecoder(maxBytes: maxBytes)))
        try pipeline.addHandler(Inbox(connection: connection))
        return connection
    }

    private final class Inbox: ChannelInboundHandler {
        typealias InboundIn = Packet
        private let connection: FrameConnection

        init(connection: FrameConnection) { self.connection = connection }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { connection.handle(unwrapInboundIn(data)) }

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case TLSUserEvent.handshakeCompleted(let negotiated)? = event as? TLSUserEvent {
                connection.state.withLock {
                    $0.isReady = true
                    $0.negotiated = negotiated
                }
            }
            context.fireUserInboundEventTriggered(event)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) {
            // A peer that closes without a TLS close_notify is permitted.
            if let error = error as? NIOSSLError, case .uncleanShutdown = error { return }
            connection.state.withLock { $0.fault = $0.fault ?? "\(error)" }
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            connection.state.withLock { $0.endedAt = .now }
        }
    }

    private func handle(_ packet: Packet) {
        let responder = state.withLock { state in
            state.frames.append(Frame(packet: packet, at: .now))
            return state.responder
        }
        if let answer = responder?(packet) { send(answer) }
    }

    // MARK: Received frames

    package var frames: [Frame] { state.withLock { $0.frames } }
    package var packets: [Packet] { frames.map(\.packet) }
    /// Received batches, in order.
    package var batches: [Mss_Device_V1_ChannelBatch] { packets.flatMap(\.push.batches) }
    /// End of the connection. The value is nil while it is open.
    package var endedAt: ContinuousClock.Instant? { state.withLock { $0.endedAt } }
    package var isEnded: Bool { endedAt != nil }
    /// Whether the TLS handshake is complete.
    package var isReady: Bool { state.withLock { $0.isReady } }
    /// The negotiated ALPN name.
    package var negotiated: String? { state.withLock { $0.negotiated } }

    /// The received frames and the state of the connection, in one line.
    package var summary: String {
        let (frames, fault, isEnded) = state.withLock { ($0.frames, $0.fault, $0.endedAt != nil) }
        var words = frames.suffix(12).map { PacketSummary.text(of: $0.packet) }
        if frames.count > 12 { words.insert("\(frames.count - 12) frames", at: 0) }
        if let fault { words.append("fault \(fault)") }
        words.append(isEnded ? "end of the connection" : "connection open")
        return words.joined(separator: ", ")
    }

    /// Waits until `find` returns a value.
    ///
    /// - Throws: `Mismatch` if that does not happen in time, or the connection ended before.
    package func find<Value>(
        _ expected: String, within limit: Duration = .seconds(10), _ find: ([Packet]) throws -> Value?
    ) async throws -> Value {
        let deadline = ContinuousClock.now + limit
        while true {
            // Read before the frames, so that frames before the end are not missed.
            let isOver = isEnded || .now >= deadline
            if let value = try find(packets) { return value }
            guard !isOver else { throw Mismatch(expected: expected, seen: summary) }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    /// Waits for some time, in which an unexpected frame could arrive.
    package func linger(_ time: Duration) async throws {
        try await Task.sleep(for: time)
    }

    /// Waits until the peer has ended the connection.
    package func expectEnd(_ expected: String = "the end of the connection", within limit: Duration = .seconds(5))
        async throws
    {
        let deadline = ContinuousClock.now + limit
        while !isEnded {
            guard .now < deadline else { throw Mismatch(expected: expected, seen: summary) }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    /// Waits until the TLS handshake is complete.
    package func expectReady() async throws {
        _ = try await find("a TLS handshake") { _ in isReady ? true : nil }
    }

    // MARK: Sending

    /// Sends frames in one write.
    package func send(_ packets: Packet...) { sendBytes(FrameBytes.of(packets)) }

    /// Sends bytes in one write.
    package func sendBytes(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Sends each byte in a separate TLS record and segment.
    package func sendSplit(_ packets: Packet...) {
        for byte in FrameBytes.of(packets) { sendBytes([byte]) }
    }

    /// Replaces the responder.
    package func respond(_ responder: (@Sendable (Packet) -> Packet?)?) { state.withLock { $0.responder = responder } }

    /// Stops or resumes reading from the socket.
    package func setReading(_ isOn: Bool) async throws { try await channel.setOption(.autoRead, value: isOn).get() }

    /// Closes the connection.
    package func cut() { channel.close(promise: nil) }
}
