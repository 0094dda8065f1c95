import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf
import Synchronization
import TestSupport

/// A device that speaks frames over TLS and does nothing by itself: it acknowledges when the test does.
final class RawDevice: Sendable {
    private let channel: any Channel
    private let frames: Frames

    /// Everything that came, in order.
    private final class Frames: ChannelInboundHandler, Sendable {
        typealias InboundIn = Mss_Device_V1_Packet
        private let received = Mutex<[Mss_Device_V1_Packet]>([])

        var all: [Mss_Device_V1_Packet] { received.withLock { $0 } }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let packet = Self.unwrapInboundIn(data)
            received.withLock { $0.append(packet) }
        }
    }

    private init(channel: any Channel, frames: Frames) {
        self.channel = channel
        self.frames = frames
    }

    /// Connects and sends the first frame.
    ///
    /// - Parameter more: what the Connect frame has beside device, store and user.
    static func connect(
        _ stack: Stack, gateway: Int = 0, device: String, user: String,
        _ more: @Sendable (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) async throws -> RawDevice {
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.trustRoots = .file(stack.certificateAuthority)
        configuration.applicationProtocols = ["mss/1"]
        let tls = try NIOSSLContext(configuration: configuration)
        let frames = Frames()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: nil))
                    try pipeline.addHandler(
                        ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
                    try pipeline.addHandler(frames)
                }
            }
            .connect(host: "127.0.0.1", port: stack.gateways[gateway]).get()
        let raw = RawDevice(channel: channel, frames: frames)
        try await raw.send(
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
                more(&$0.connect)
            })
        return raw
    }

    /// Frames so far.
    var received: [Mss_Device_V1_Packet] { frames.all }

    /// Batches so far, in order.
    var batches: [Mss_Device_V1_ChannelBatch] { received.flatMap(\.push.batches) }

    /// Waits until this has come.
    func waits(for what: String, _ condition: ([Mss_Device_V1_Packet]) -> Bool) async throws {
        try await eventually("\(what); there is \(received)", within: .seconds(15)) { condition(received) }
    }

    /// Waits until everything that waited has come.
    func isCaughtUp() async throws {
        try await waits(for: "caught up") { $0.contains { if case .caughtUp? = $0.body { true } else { false } } }
    }

    func send(_ packet: Mss_Device_V1_Packet) async throws {
        var buffer = channel.allocator.buffer(capacity: 256)
        PacketEncoder.encode(packet, into: &buffer)
        try await channel.writeAndFlush(buffer)
    }

    /// Acknowledges everything of a batch's channel up to its end.
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

    /// Cuts the connection.
    func disconnect() async throws { try await channel.close() }
}
