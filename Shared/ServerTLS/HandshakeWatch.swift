package import NIOCore
import NIOSSL
import NIOTLS

/// Bounds the time of a TLS handshake, and keeps what goes wrong in TLS from those behind it, who have another word
/// for a broken request. It stands right behind the TLS handler, which ends the connection after its errors.
package final class HandshakeWatch: ChannelInboundHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    private let limit: TimeAmount
    private var alarm: Scheduled<Void>?

    /// - Parameter limit: from the connection to the end of the handshake.
    package init(limit: TimeAmount) { self.limit = limit }

    package func channelActive(context: ChannelHandlerContext) {
        let pipeline = context.pipeline
        alarm = context.eventLoop.assumeIsolated().scheduleTask(in: limit) {
            pipeline.syncOperations.closePastTLS()
        }
        context.fireChannelActive()
    }

    package func channelInactive(context: ChannelHandlerContext) {
        alarm?.cancel()
        context.fireChannelInactive()
    }

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case .handshakeCompleted? = event as? TLSUserEvent { alarm?.cancel() }
        context.fireUserInboundEventTriggered(event)
    }

    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard !(error is NIOSSLError), !(error is BoringSSLError), !(error is NIOSSLCloseTimedOutError) else { return }
        context.fireErrorCaught(error)
    }
}
