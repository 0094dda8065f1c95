import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf
import Synchronization
import TestSupport

/// A device's connection to a test's gateway, from a chosen loopback address.
final class SocketDevice: Sendable {
    private let channel: any Channel
    private let frames: Frames

    /// Collects the received frames.
    private final class Frames: ChannelInboundHandler, Sendable {
        typealias InboundIn = Mss_Device_V1_Packet
        let received = Mutex<[Mss_Device_V1_Packet]>([])

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let packet = Self.unwrapInboundIn(data)
            received.withLock { $0.append(packet) }
        }

        /// Closes the connection on any error.
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private init(channel: any Channel, frames: Frames) {
        self.channel = channel
        self.frames = frames
    }

    /// Sends bytes before all other data.
    private final class Preface: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let pieces: [[UInt8]]

        init(_ pieces: [[UInt8]]) { self.pieces = pieces }

        func channelActive(context: ChannelHandlerContext) {
            for piece in pieces { context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(bytes: piece)), promise: nil) }
            context.fireChannelActive()
        }
    }

    /// Connects, with TLS when there is an authority. The TLS handshake need not have ended.
    ///
    /// - Parameter preface: the bytes that a load balancer sends first, in pieces.
    static func open(
        _ gateway: GatewaySocketFixture, from source: String = "127.0.0.1", isTLS: Bool = true,
        preface: [[UInt8]] = []
    ) async throws -> SocketDevice {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(gateway.authority)
        configuration.applicationProtocols = [DeviceProtocolLimits.applicationProtocol]
        let tls = try NIOSSLContext(configuration: configuration)
        let frames = Frames()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .bind(to: SocketAddress(ipAddress: source, port: 0))
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    if !preface.isEmpty { try pipeline.addHandler(Preface(preface)) }
                    if isTLS { try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: nil)) }
                    try pipeline.addHandler(
                        ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
                    try pipeline.addHandler(frames)
                }
            }
            .connect(host: "127.0.0.1", port: gateway.port).get()
        return SocketDevice(channel: channel, frames: frames)
    }

    /// Sends a frame.
    func send(_ fill: (inout Mss_Device_V1_Packet) -> Void) async throws {
        var buffer = ByteBuffer()
        PacketEncoder.encode(.with(fill), into: &buffer)
        try await send(buffer)
    }

    /// Sends bytes.
    func send(_ bytes: ByteBuffer) async throws { try await channel.writeAndFlush(bytes) }

    /// Sends the Connect of an existing app.
    func sendConnect() async throws {
        try await send {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "w_app"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
        }
    }

    /// Waits for the answer to a ping, which shows that the gateway accepted the `Connect`.
    func isServed() async throws {
        try await sendConnect()
        try await send { $0.ping.number = 7 }
        try await eventually("a pong; there is \(received)", within: .seconds(10)) {
            received.contains { $0.pong.number == 7 }
        }
    }

    /// Waits for the end of the connection. Returns the code of the last frame if it is a Close.
    @discardableResult
    func closeCode() async throws -> UInt32? {
        try await eventually("closed; there is \(received)", within: .seconds(10)) { !channel.isActive }
        guard case .close(let close)? = received.last?.body else { return nil }
        return close.code
    }

    /// Whether the connection is open.
    var isOpen: Bool { channel.isActive }

    /// The received frames.
    var received: [Mss_Device_V1_Packet] { frames.received.withLock { $0 } }

    func close() async throws { try await channel.close() }
}
