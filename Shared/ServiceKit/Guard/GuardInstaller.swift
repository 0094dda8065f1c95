package import NIOCore
import NIOHTTP1
package import NIOSSL
import ServerTLS

/// Puts the guard where Hummingbird offers no place: behind the decoder, with a look at the bytes before it, and TLS
/// before all.
///
/// It adds NIO's pipeline handler too. Without it a request that follows one whose answer closes would still be served.
package final class GuardInstaller: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = NIOAny

    private let limits: ConnectionLimits
    private let server: any GuardedServer
    private let sources: SourceConnections
    private let tls: NIOSSLContext?
    private let plainNetworks: PlainHTTPNetworks?
    private var guardContext: ChannelHandlerContext?

    /// - Parameters:
    ///   - tls: nil for plain HTTP.
    ///   - plainNetworks: of plain HTTP: where it is taken from; nil: from everywhere.
    package init(
        limits: ConnectionLimits, server: any GuardedServer, sources: SourceConnections, tls: NIOSSLContext? = nil,
        plainNetworks: PlainHTTPNetworks? = nil
    ) {
        self.limits = limits
        self.server = server
        self.sources = sources
        self.tls = tls
        self.plainNetworks = plainNetworks
    }

    package func handlerAdded(context: ChannelHandlerContext) {
        do {
            let pipeline = context.pipeline.syncOperations
            let pipelineHandler = HTTPServerPipelineHandler()
            let requestGuard = RequestGuard(
                limits: limits, server: server, entryRefusal: entryRefusal(context.channel), behind: pipelineHandler)
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
            try pipeline.addHandler(pipelineHandler, position: .after(decoder))
            try pipeline.addHandler(requestGuard, position: .after(pipelineHandler))
            try pipeline.addHandler(FirstByteWatch(requestGuard), position: .first)
            if let tls { try pipeline.beginWithTLS(tls, handshakeLimit: limits.handshake) }
            guardContext = try pipeline.context(handler: requestGuard)
        } catch {
            // Without its guard a connection must not exist.
            context.close(promise: nil)
        }
    }

    /// Why a connection is not served; nil: it is, and counts for its source.
    private func entryRefusal(_ channel: any Channel) -> RequestGuard.EntryRefusal? {
        if tls == nil, let plainNetworks, !plainNetworks.allow(channel.remoteAddress) {
            return .init(status: .forbidden, detail: PlainHTTPNetworks.refusal)
        }
        guard !sources.take(channel) else { return nil }
        return .init(
            status: .serviceUnavailable,
            detail: "This address has \(limits.sourceConnections) connections open; use those, or close some.")
    }

    package func handlerRemoved(context: ChannelHandlerContext) { guardContext = nil }

    /// What the codec between the guard and here could not take, such as a head that is no valid request.
    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let guardContext, !(error is IOError), !(error is ChannelError) else {
            context.fireErrorCaught(error)
            return
        }
        guard let requestGuard = guardContext.handler as? RequestGuard else { return }
        requestGuard.refuse(guardContext, .badRequest, "The request is not valid HTTP/1.1; correct its form.")
    }
}
