import DeviceProtocol
import Foundation
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf

/// A proxy between devices and a gateway that changes their frames, so that a correct implementation looks broken.
final class FrameProxy: Sendable {
    /// Returns the frames that replace one frame.
    typealias Change = @Sendable (Mss_Device_V1_Packet) -> [Mss_Device_V1_Packet]

    /// The changes to the frames of one connection.
    struct Fault: Sendable {
        var toDevice: Change = { [$0] }
        var toGateway: Change = { [$0] }
    }

    let port: Int
    private let listener: any Channel

    private init(listener: any Channel) {
        self.listener = listener
        port = listener.localAddress?.port ?? 0
    }

    /// Forwards the changed frames to the other side.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = Mss_Device_V1_Packet
        private let other: any Channel
        private let change: Change

        init(to other: any Channel, _ change: @escaping Change) {
            self.other = other
            self.change = change
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var buffer = ByteBuffer()
            for packet in change(unwrapInboundIn(data)) { PacketEncoder.encode(packet, into: &buffer) }
            other.writeAndFlush(buffer, promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) {
            let other = other
            // Closes after the pending writes.
            other.writeAndFlush(ByteBuffer()).whenComplete { _ in other.close(promise: nil) }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Listens on the loopback address with the stack's certificate.
    ///
    /// - Parameters:
    ///   - gateway: the port of the gateway.
    ///   - fault: made anew for each connection.
    static func start(
        _ stack: Stack, before gateway: Int, _ fault: @escaping @Sendable () -> Fault
    ) async throws -> FrameProxy {
        let folder = stack.folder.appending(path: "tls")
        var server = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(folder.appending(path: "server.pem").path).map {
                .certificate($0)
            },
            privateKey: .privateKey(
                try NIOSSLPrivateKey(file: folder.appending(path: "server.key").path, format: .pem)))
        server.applicationProtocols = ["mss/1"]
        var client = TLSConfiguration.makeClientConfiguration()
        client.certificateVerification = .none
        client.applicationProtocols = ["mss/1"]
        let (toDevice, toGateway) = (try NIOSSLContext(configuration: server), try NIOSSLContext(configuration: client))
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { device in
                let fault = fault()
                return ClientBootstrap(group: device.eventLoop)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            let pipeline = channel.pipeline.syncOperations
                            try pipeline.addHandler(NIOSSLClientHandler(context: toGateway, serverHostname: nil))
                            try pipeline.addHandler(
                                ByteToMessageHandler(PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)))
                            try pipeline.addHandler(Relay(to: device, fault.toDevice))
                        }
                    }
                    .connect(host: "127.0.0.1", port: gateway)
                    .flatMapThrowing { channel in
                        let pipeline = device.pipeline.syncOperations
                        try pipeline.addHandler(NIOSSLServerHandler(context: toDevice))
                        try pipeline.addHandler(
                            ByteToMessageHandler(PacketDecoder.ofDevice))
                        try pipeline.addHandler(Relay(to: channel, fault.toGateway))
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return FrameProxy(listener: listener)
    }

    /// Accepts no new connections.
    func stop() async { try? await listener.close() }
}
