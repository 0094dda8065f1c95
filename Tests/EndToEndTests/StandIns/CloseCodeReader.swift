import NIOCore
import NIOHTTP1
import NIOWebSocket
import Synchronization

/// A device's side of a WebSocket: forwards the bytes of messages, and keeps the code of the gateway's close.
final class CloseCodeReader: ChannelInboundHandler, Sendable {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = WebSocketFrame

    private let code = Mutex<UInt16?>(nil)

    /// The code; nil before the close.
    var value: UInt16? { code.withLock { $0 } }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = Self.unwrapInboundIn(data)
        switch frame.opcode {
        case .binary, .continuation:
            context.fireChannelRead(wrapInboundOut(frame.data))
        case .connectionClose:
            code.withLock { $0 = frame.data.getInteger(at: frame.data.readerIndex) }
            let answer = WebSocketFrame(
                fin: true, opcode: .connectionClose, maskKey: .random(), data: frame.data)
            context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
        default:
            break
        }
    }

    /// Upgrades a connection to a WebSocket of the device protocol.
    ///
    /// - Parameter ready: adds the handlers of the WebSocket's frames.
    /// - Returns: a future that succeeds when the gateway has agreed.
    static func handshake(
        on pipeline: ChannelPipeline.SynchronousOperations, _ ready: @escaping @Sendable (any Channel) throws -> Void
    ) throws -> EventLoopFuture<Void> {
        let head = HTTPRequestHead(
            version: .http1_1, method: .GET, uri: "/mss/1",
            headers: ["Host": "127.0.0.1", "Sec-WebSocket-Protocol": "mss.1"])
        let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: 1 << 21) { channel, _ in
            channel.eventLoop.makeCompletedFuture { try ready(channel) }
        }
        var configuration = NIOUpgradableHTTPClientPipelineConfiguration(
            upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
                upgradeRequestHead: head, upgraders: [upgrader],
                notUpgradingCompletionHandler: { $0.eventLoop.makeFailedFuture(ChannelError.connectPending) }))
        configuration.leftOverBytesStrategy = .forwardBytes
        return try pipeline.configureUpgradableHTTPClientPipeline(configuration: configuration)
    }
}
