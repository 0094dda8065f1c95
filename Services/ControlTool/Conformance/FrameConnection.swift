import DeviceProtocol
import NIOCore
import NIOSSL
import NIOTLS
import SwiftProtobuf
import Synchronization

/// One end of a TLS connection: keeps every frame that comes, and sends what a script says, well-formed or not.
final class FrameConnection: Sendable {
    typealias Packet = Mss_Device_V1_Packet

    /// A frame, and when it came.
    struct Frame: Sendable {
        let packet: Packet
        let at: ContinuousClock.Instant
    }

    private struct State: Sendable {
        var frames: [Frame] = []
        var isReady = false
        var negotiated: String?
        var fault: String?
        var endedAt: ContinuousClock.Instant?
        var responder: (@Sendable (Packet) -> Packet?)?
    }

    /// How often a script looks for what it waits for.
    private static let lookEvery = Duration.milliseconds(5)

    let channel: any Channel
    /// When the connection was made.
    let startedAt = ContinuousClock.now
    private let state: Mutex<State>

    private init(_ channel: any Channel, responder: (@Sendable (Packet) -> Packet?)?) {
        self.channel = channel
        state = Mutex(State(responder: responder))
    }

    /// Puts the codec and the inbox into a channel's pipeline, in its initializer.
    ///
    /// - Parameters:
    ///   - tls: the handler below; nil leaves the bytes as they are.
    ///   - maxBytes: the largest frame taken.
    ///   - responder: answers frames at once; nil answers nothing.
    static func install(
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

        func channelRead(context: ChannelHandlerContext, data: NIOAny) { connection.came(unwrapInboundIn(data)) }

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
            // A peer that hangs up without TLS's goodbye is normal here.
            if let error = error as? NIOSSLError, case .uncleanShutdown = error { return }
            connection.state.withLock { $0.fault = $0.fault ?? "\(error)" }
            context.close(promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            connection.state.withLock { $0.endedAt = .now }
        }
    }

    private func came(_ packet: Packet) {
        let responder = state.withLock { state in
            state.frames.append(Frame(packet: packet, at: .now))
            return state.responder
        }
        if let answer = responder?(packet) { send(answer) }
    }

    // MARK: What came

    var frames: [Frame] { state.withLock { $0.frames } }
    var packets: [Packet] { frames.map(\.packet) }
    /// Batches so far, in order.
    var batches: [Mss_Device_V1_ChannelBatch] { packets.flatMap(\.push.batches) }
    /// When the connection ended; nil while it is there.
    var endedAt: ContinuousClock.Instant? { state.withLock { $0.endedAt } }
    var isEnded: Bool { endedAt != nil }
    /// Whether the TLS handshake is over.
    var isReady: Bool { state.withLock { $0.isReady } }
    /// The ALPN name agreed on.
    var negotiated: String? { state.withLock { $0.negotiated } }

    /// What happened so far, in one line.
    var summary: String {
        let (frames, fault, isEnded) = state.withLock { ($0.frames, $0.fault, $0.endedAt != nil) }
        var words = frames.suffix(12).map { PacketSummary.text(of: $0.packet) }
        if frames.count > 12 { words.insert("\(frames.count - 12) frames", at: 0) }
        if let fault { words.append("fault \(fault)") }
        words.append(isEnded ? "end of the connection" : "connection open")
        return words.joined(separator: ", ")
    }

    /// Waits until the script finds what it looks for.
    ///
    /// - Throws: `Mismatch` when it does not come in time, or cannot come any more.
    func find<Value>(
        _ expected: String, within limit: Duration = .seconds(10), _ find: ([Packet]) throws -> Value?
    ) async throws -> Value {
        let deadline = ContinuousClock.now + limit
        while true {
            // Looked at before the frames: what came before the end has been seen then.
            let isOver = isEnded || .now >= deadline
            if let value = try find(packets) { return value }
            guard !isOver else { throw Mismatch(expected: expected, seen: summary) }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    /// Waits for a moment in which something that must not come may come.
    func linger(_ time: Duration) async throws {
        try await Task.sleep(for: time)
    }

    /// Waits until the other side has ended the connection.
    func expectEnd(_ expected: String = "the end of the connection", within limit: Duration = .seconds(5)) async throws
    {
        let deadline = ContinuousClock.now + limit
        while !isEnded {
            guard .now < deadline else { throw Mismatch(expected: expected, seen: summary) }
            try await Task.sleep(for: Self.lookEvery)
        }
    }

    /// Waits until the TLS handshake is over.
    func expectReady() async throws {
        _ = try await find("a TLS handshake") { _ in isReady ? true : nil }
    }

    // MARK: What goes out

    /// Sends frames in one write.
    func send(_ packets: Packet...) { sendBytes(FrameBytes.of(packets)) }

    /// Sends bytes in one write.
    func sendBytes(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

    /// Sends every byte in a TLS record and a segment of its own.
    func sendSplit(_ packets: Packet...) {
        for byte in FrameBytes.of(packets) { sendBytes([byte]) }
    }

    /// From now on frames are answered by this.
    func respond(_ responder: (@Sendable (Packet) -> Packet?)?) { state.withLock { $0.responder = responder } }

    /// Stops or goes on reading from the socket.
    func setReading(_ isOn: Bool) async throws { try await channel.setOption(.autoRead, value: isOn).get() }

    /// Cuts the connection.
    func cut() { channel.close(promise: nil) }
}
