import DeviceProtocol
import NIOCore
import NIOTLS

/// Detects the protocol of a new connection, sets up its pipeline, and removes itself (DeviceProtocol.md, Transport).
final class TransportChoice: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The protocol over TLS.
    enum Transport: Hashable {
        /// Frames of the device protocol.
        case plain
        /// HTTP/1.1, which may become a WebSocket.
        case http
        /// MQTT, whose first packet is always `CONNECT`.
        case mqtt
    }

    /// The protocol name of HTTP in the TLS handshake.
    static let httpName = "http/1.1"

    private let setUp: (Transport, ChannelPipeline.SynchronousOperations) throws -> Void
    private let acceptsMQTT: Bool
    private var isChosen = false

    /// - Parameters:
    ///   - acceptsMQTT: whether the port accepts MQTT.
    ///   - setUp: adds the handlers of a transport.
    init(acceptsMQTT: Bool, setUp: @escaping (Transport, ChannelPipeline.SynchronousOperations) throws -> Void) {
        self.acceptsMQTT = acceptsMQTT
        self.setUp = setUp
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted(let name)? = event as? TLSUserEvent {
            switch name {
            case DeviceProtocolLimits.applicationProtocol?: choose(.plain, context)
            case Self.httpName?: choose(.http, context)
            case MQTTBridge.applicationProtocol? where acceptsMQTT: choose(.mqtt, context)
            default: break
            }
        }
        context.fireUserInboundEventTriggered(event)
    }

    /// Bytes arrive here only without a negotiated protocol. The first byte then decides.
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = Self.unwrapInboundIn(data)
        if !isChosen, let first = bytes.readableBytesView.first {
            choose(transport(of: first), context, first: data)
        }
    }

    private func transport(of first: UInt8) -> Transport {
        switch first {
        case 0: .plain
        case 0x10 where acceptsMQTT: .mqtt
        default: .http
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
