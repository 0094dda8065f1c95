package import NIOCore
package import NIOSSL
import NIOTLS

extension ChannelPipeline.SynchronousOperations {
    /// Adds TLS in front of all other handlers, with a time limit for the handshake.
    package func beginWithTLS(_ tls: NIOSSLContext, handshakeLimit: TimeAmount) throws {
        try addHandler(HandshakeWatch(limit: handshakeLimit), position: .first)
        try addHandler(NIOSSLServerHandler(context: tls), position: .first)
    }

    /// Closes the connection at once, with or without TLS. A close through TLS would first wait for the peer's close
    /// message.
    package func closePastTLS() {
        guard let tls = try? context(handlerType: NIOSSLServerHandler.self) else { return close(promise: nil) }
        tls.close(promise: nil)
    }
}

/// Limits the time of a TLS handshake, and hides TLS errors from later handlers, which report malformed requests. It is
/// directly after the TLS handler, which closes the connection after its errors.
private final class HandshakeWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let limit: TimeAmount
    private var alarm: Scheduled<Void>?

    /// - Parameter limit: from the connection to the end of the handshake.
    init(limit: TimeAmount) { self.limit = limit }

    func channelActive(context: ChannelHandlerContext) {
        let pipeline = context.pipeline
        alarm = context.eventLoop.assumeIsolated().scheduleTask(in: limit) {
            pipeline.syncOperations.closePastTLS()
        }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        alarm?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { alarm?.cancel() }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !(error is NIOSSLError), !(error is BoringSSLError), !(error is NIOSSLCloseTimedOutError) else { return }
        context.fireErrorCaught(error)
    }
}
