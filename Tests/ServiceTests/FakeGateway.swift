import DeviceProtocol
import NIOCore
import NIOPosix
import SwiftProtobuf
import TestSupport

/// A gateway whose every frame the test decides, without TLS, on a port of its own.
///
/// Change first: what `greet` answers, and the frames that a test sends.
final class FakeGateway: Sendable {
    /// One client that has connected.
    final class Session: Sendable {
        private let channel: any Channel
        private let frames: FrameQueue

        fileprivate init(_ channel: any Channel, _ frames: FrameQueue) {
            self.channel = channel
            self.frames = frames
        }

        /// The client's next frame.
        ///
        /// - Throws: `Failure` when none comes in time, or the client has hung up.
        func next() async throws -> Mss_Device_V1_Packet {
            guard let packet = try await frames.next() else { throw Failure("the client hung up") }
            return packet
        }

        /// The next frame that carries a stored position; others are skipped.
        func nextStored() async throws -> [Mss_Device_V1_StoredUpto] {
            while true { if case .storedAck(let ack)? = try await next().body { return ack.channels } }
        }

        /// The next report of confirmations; others are skipped.
        func nextReport() async throws -> Mss_Device_V1_ConfirmReport {
            while true { if case .confirmReport(let report)? = try await next().body { return report } }
        }

        /// Waits until the client has hung up.
        func ended() async throws {
            while try await frames.next() != nil {}
        }

        func send(_ packet: Mss_Device_V1_Packet) {
            var buffer = ByteBuffer()
            PacketEncoder.encode(packet, into: &buffer)
            channel.writeAndFlush(buffer, promise: nil)
        }

        /// Bytes of any kind.
        func sendRaw(_ bytes: [UInt8]) { channel.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil) }

        /// Takes the Connect, greets, accepts the bind, and returns the Connect.
        func greet() async throws -> Mss_Device_V1_Connect {
            guard case .connect(let connect)? = try await next().body else { throw Failure("no Connect") }
            send(.with { $0.connected.heartbeatSeconds = 60 })
            if connect.hasBind { accept(connect.bind.bindNumber) }
            return connect
        }

        func accept(_ bindNumber: UInt32) {
            send(
                .with {
                    $0.bindResult.bindNumber = bindNumber
                    $0.bindResult.accepted = true
                })
        }

        /// Pushes ids of the user channel "B"; the payload of each is its id.
        func push(_ ids: [Int64], after: Int64, upto: Int64, bind: UInt32 = 1) {
            let batch = Mss_Device_V1_ChannelBatch.with {
                $0.bizType = "B"
                $0.bindNumber = bind
                $0.after = after
                $0.upto = upto
                $0.entries = ids.map { id in
                    .with {
                        $0.oplogID = id
                        $0.payload = .init("\(id)".utf8)
                    }
                }
            }
            send(.with { $0.push.batches = [batch] })
        }

        /// Cuts the connection without a word.
        func cut() { channel.close(promise: nil) }
    }

    private let listener: any Channel
    private let sessions: AsyncStream<Session>

    private init(_ listener: any Channel, _ sessions: AsyncStream<Session>) {
        self.listener = listener
        self.sessions = sessions
    }

    var port: Int { listener.localAddress?.port ?? 0 }

    /// Listens while the body runs.
    static func with(_ body: (FakeGateway) async throws -> Void) async throws {
        let (sessions, accepted) = AsyncStream.makeStream(of: Session.self)
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let frames = FrameQueue()
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(
                        ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toGatewayBytes)))
                    try pipeline.addHandler(FrameHandler(frames))
                    accepted.yield(Session(channel, frames))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let gateway = FakeGateway(listener, sessions)
        do {
            try await body(gateway)
        } catch {
            try? await listener.close()
            throw error
        }
        try await listener.close()
    }

    /// The next client that connects.
    func accept() async throws -> Session {
        for await session in sessions { return session }
        throw Failure("nobody connected")
    }
}

/// Frames of one client in order, then nil for good.
private final class FrameQueue: Sendable {
    private let frames: AsyncStream<Mss_Device_V1_Packet>
    let arrived: AsyncStream<Mss_Device_V1_Packet>.Continuation

    init() { (frames, arrived) = AsyncStream.makeStream() }

    func next() async throws -> Mss_Device_V1_Packet? {
        for await frame in frames { return frame }
        return nil
    }
}

private final class FrameHandler: ChannelInboundHandler, Sendable {
    typealias InboundIn = Mss_Device_V1_Packet
    private let frames: FrameQueue

    init(_ frames: FrameQueue) { self.frames = frames }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { frames.arrived.yield(unwrapInboundIn(data)) }
    func channelInactive(context: ChannelHandlerContext) { frames.arrived.finish() }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
