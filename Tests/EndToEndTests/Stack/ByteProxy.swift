import NIOCore
import NIOPosix
import Synchronization

/// A proxy between devices and a port that counts the bytes of both directions, as TCP carries them, TLS included.
final class ByteProxy: Sendable {
    let port: Int
    private let listener: any Channel
    private let count: Counted

    private final class Counted: Sendable {
        let bytes = Atomic<Int>(0)
    }

    /// The number of bytes so far.
    var bytes: Int { count.bytes.load(ordering: .relaxed) }

    private init(listener: any Channel, count: Counted) {
        self.listener = listener
        self.count = count
        port = listener.localAddress?.port ?? 0
    }

    /// Forwards the bytes to the other side, and closes with it.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        private let other: any Channel
        private let count: Counted

        init(to other: any Channel, _ count: Counted) {
            self.other = other
            self.count = count
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let buffer = unwrapInboundIn(data)
            count.bytes.add(buffer.readableBytes, ordering: .relaxed)
            other.writeAndFlush(buffer, promise: nil)
        }

        func channelInactive(context: ChannelHandlerContext) { other.close(promise: nil) }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    /// Runs the body with a proxy before the target port.
    static func before<Value>(_ target: Int, _ body: (ByteProxy) async throws -> Value) async throws -> Value {
        let count = Counted()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { device in
                ClientBootstrap(group: device.eventLoop)
                    .channelInitializer { channel in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(Relay(to: device, count))
                        }
                    }
                    .connect(host: "127.0.0.1", port: target)
                    .flatMapThrowing { channel in
                        try device.pipeline.syncOperations.addHandler(Relay(to: channel, count))
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let proxy = ByteProxy(listener: listener, count: count)
        do {
            let value = try await body(proxy)
            try? await listener.close()
            return value
        } catch {
            try? await listener.close()
            throw error
        }
    }
}
