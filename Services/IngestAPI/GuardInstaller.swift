import NIOCore
import NIOHTTP1
import NIOSSL
import ServerTLS

/// Puts the guard where Hummingbird offers no place: behind the decoder, with a look at the bytes before it, and TLS
/// before all.
///
/// It adds NIO's pipeline handler too. Without it a request that follows one whose answer closes would still be served.
final class GuardInstaller: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    private let pipelineHandler = HTTPServerPipelineHandler()
    private let requestGuard: RequestGuard
    private let tls: NIOSSLContext?
    private let handshakeLimit: TimeAmount
    private var guardContext: ChannelHandlerContext?

    /// - Parameter tls: nil for plain HTTP.
    init(limits: ConnectionLimits, metrics: IngestMetrics, tls: NIOSSLContext? = nil) {
        self.tls = tls
        handshakeLimit = limits.handshake
        requestGuard = RequestGuard(limits: limits, metrics: metrics, behind: pipelineHandler)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        do {
            let pipeline = context.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(pipelineHandler, position: .after(decoder))
            try pipeline.addHandler(requestGuard, position: .after(pipelineHandler))
            try pipeline.addHandler(FirstByteWatch(requestGuard), position: .first)
            if let tls { try pipeline.beginWithTLS(tls, handshakeLimit: handshakeLimit) }
            guardContext = try pipeline.context(handler: requestGuard)
        } catch {
            // Without its guard a connection must not exist.
            context.close(promise: nil)
        }
    }

    func handlerRemoved(context: ChannelHandlerContext) { guardContext = nil }

    /// What the codec between the guard and here could not take, such as a head that is no valid request.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let guardContext, !(error is IOError), !(error is ChannelError) else {
            context.fireErrorCaught(error)
            return
        }
        requestGuard.refuse(guardContext, .badRequest, "The request is not valid HTTP/1.1; correct its form.")
    }
}
