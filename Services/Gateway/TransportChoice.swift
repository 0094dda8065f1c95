import DeviceProtocol
import NIOCore
import NIOTLS

/// Finds out what a new connection speaks, makes its pipeline that, and leaves (DeviceProtocol.md, Transport).
final class TransportChoice: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// What comes over TLS.
    enum Transport: Hashable {
        /// The frames themselves.
        case plain
        /// HTTP/1.1, which may become a WebSocket.
        case http
    }

    /// The protocol's name of HTTP in the TLS handshake.
    static let httpName = "http/1.1"

    private let setUp: (Transport, ChannelPipeline.SynchronousOperations) throws -> Void
    private var isChosen = false

    /// - Parameter setUp: adds the handlers of a transport.
    init(setUp: @escaping (Transport, ChannelPipeline.SynchronousOperations) throws -> Void) { self.setUp = setUp }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let name)? = event as? TLSUserEvent {
            switch name {
            case DeviceProtocolLimits.applicationProtocol?: choose(.plain, context)
            case Self.httpName?: choose(.http, context)
            default: break
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Bytes come here only without a name: then the first of them decides.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Self.unwrapInboundIn(data)
        if !isChosen, let first = bytes.readableBytesView.first {
            choose(first == 0 ? .plain : .http, context, first: data)
        }
    }

    private func choose(_ transport: Transport, _ context: ChannelHandlerContext, first data: NIOAny? = nil) {
        guard !isChosen else { return }
        isChosen = true
        do {
            try setUp(transport, context.pipeline.syncOperations)
        } catch {
            context.close(promise: nil)
            return
        }
        if let data { context.fireChannelRead(data) }
        context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
    }
}
