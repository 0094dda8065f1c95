import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL
import NIOWebSocket
import SwiftProtobuf
import Synchronization
import TestSupport

/// A device that sends frames over TLS and does nothing by itself: it acknowledges when the test does.
final class RawDevice: Sendable {
    /// The transport of its frames.
    enum Transport: String, Sendable, CaseIterable {
        case plain
        case webSocket
    }

    private let transport: Transport
    private let channel: any Channel
    private let frames: Frames
    /// The code of the WebSocket's close.
    private let closeCode: CloseCodeReader

    /// Receives each frame as it arrives and returns the frames to send.
    typealias Answering = @Sendable (Mss_Device_V1_Packet) -> [Mss_Device_V1_Packet]

    /// All received frames in order; empty for a device with `Answering`.
    private final class Frames: ChannelInboundHandler, Sendable {
        typealias InboundIn = Mss_Device_V1_Packet
        private let received = Mutex<[Mss_Device_V1_Packet]>([])
        private let answering: Answering?

        init(answering: Answering?) { self.answering = answering }

        var all: [Mss_Device_V1_Packet] { received.withLock { $0 } }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let packet = Self.unwrapInboundIn(data)
            guard let answering else {
                received.withLock { $0.append(packet) }
                return
            }
            var buffer = ByteBuffer()
            for answer in answering(packet) { PacketEncoder.encode(answer, into: &buffer) }
            if buffer.readableBytes > 0 { context.channel.writeAndFlush(buffer, promise: nil) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private init(transport: Transport, channel: any Channel, frames: Frames, closeCode: CloseCodeReader) {
        self.transport = transport
        self.channel = channel
        self.frames = frames
        self.closeCode = closeCode
    }

    /// Connects and sends the first frame.
    ///
    /// - Parameter more: sets further fields of the Connect frame.
    static func connect(
        _ stack: Stack, over transport: Transport = .plain, gateway: Int = 0, device: String, user: String,
        _ more: @Sendable (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) async throws -> RawDevice {
        let raw = try await open(stack, over: transport, gateway: gateway)
        try await raw.send(connectPacket(device: device, user: user, more))
        return raw
    }

    /// The first frame.
    static func connectPacket(
        device: String, user: String, _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) -> Mss_Device_V1_Packet {
        .with {
            $0.connect.protocolVersion = DeviceProtocolLimits.version
            $0.connect.instanceID = Stack.instance
            $0.connect.deviceID = device
            $0.connect.storeID = "store"
            $0.connect.osName = "iOS"
            $0.connect.appVersion = "1.0"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = user
            $0.connect.bind.sessionID = "session"
            $0.connect.bind.requestedByApp = true
            more(&$0.connect)
        }
    }

    /// Connects and sends nothing.
    static func open(
        _ stack: Stack, over transport: Transport, gateway: Int = 0, answering: Answering? = nil
    ) async throws -> RawDevice {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(stack.certificateAuthority)
        configuration.applicationProtocols = [transport == .plain ? "mss/1" : "http/1.1"]
        let tls = try NIOSSLContext(configuration: configuration)
        let (frames, closeCode) = (Frames(answering: answering), CloseCodeReader())
        let addFrames: @Sendable (any Channel) throws -> Void = { channel in
            let pipeline = channel.pipeline.syncOperations
            if transport == .webSocket { try pipeline.addHandler(closeCode) }
            try pipeline.addHandler(ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
            try pipeline.addHandler(frames)
        }
        let (channel, ready) = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: stack.gateways[gateway]) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: nil))
                    if transport == .plain {
                        try addFrames(channel)
                        return (channel, channel.eventLoop.makeSucceededVoidFuture())
                    }
                    return (channel, try CloseCodeReader.handshake(on: pipeline, addFrames))
                }
            }
        try await ready.get()
        return RawDevice(transport: transport, channel: channel, frames: frames, closeCode: closeCode)
    }

    /// Whether the connection is open.
    var isConnected: Bool { channel.isActive }

    /// All frames so far.
    var received: [Mss_Device_V1_Packet] { frames.all }

    /// All batches so far, in order.
    var batches: [Mss_Device_V1_ChannelBatch] { received.flatMap(\.push.batches) }

    /// Waits until the received frames meet a condition.
    func waits(for what: String, _ condition: ([Mss_Device_V1_Packet]) -> Bool) async throws {
        try await eventually("\(what); there is \(received)", within: .seconds(15)) { condition(received) }
    }

    /// Waits until the whole backlog has arrived.
    func isCaughtUp() async throws {
        try await waits(for: "caught up") { $0.contains { if case .caughtUp? = $0.body { true } else { false } } }
    }

    /// Sends a frame; over a WebSocket as one message.
    func send(_ packet: Mss_Device_V1_Packet) async throws {
        var buffer = channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(packet, into: &buffer)
        switch transport {
        case .plain: try await channel.writeAndFlush(buffer)
        case .webSocket: try await send(.binary, buffer)
        }
    }

    /// Sends one WebSocket frame.
    func send(_ opcode: WebSocketOpcode, _ data: ByteBuffer, fin: Bool = true, isMasked: Bool = true) async throws {
        try await channel.writeAndFlush(
            WebSocketFrame(fin: fin, opcode: opcode, maskKey: isMasked ? .random() : nil, data: data))
    }

    /// Sends the fragments of one WebSocket message at once, each as a frame.
    func send(fragments: [ByteBuffer]) async throws {
        for (index, data) in fragments.dropLast().enumerated() {
            channel.writeAndFlush(
                WebSocketFrame(
                    fin: false, opcode: index == 0 ? .binary : .continuation, maskKey: .random(), data: data),
                promise: nil)
        }
        try await send(.continuation, fragments.last ?? ByteBuffer())
    }

    /// Waits until the gateway has closed the connection. Returns the WebSocket's close code.
    @discardableResult
    func isClosed() async throws -> UInt16? {
        try await eventually("closed; there is \(received)", within: .seconds(10)) { !channel.isActive }
        return closeCode.value
    }

    /// Acknowledges a batch's channel up to the end of the batch.
    func acknowledge(_ batch: Mss_Device_V1_ChannelBatch) async throws {
        try await send(
            .with {
                $0.storedAck.channels = [
                    .with {
                        $0.kind = batch.kind
                        $0.bizType = batch.bizType
                        $0.bindNumber = batch.bindNumber
                        $0.upto = batch.upto
                    }
                ]
            })
    }

    /// Closes the connection.
    func disconnect() async throws { try await channel.close() }
}
