package import NIOCore
import NIOHTTP1
package import NIOSSL
import ServerTLS

/// Adds the guard to a Hummingbird pipeline: `RequestGuard` after the decoder, `FirstByteWatch` before it, and TLS
/// first.
///
/// It also adds NIO's pipeline handler. Without that handler, a request after a closing response would still be served.
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
    ///   - plainNetworks: the networks that may use plain HTTP; nil: all.
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
            // A connection must not exist without its guard.
            context.close(promise: nil)
        }
    }

    /// The reason to refuse a connection. A nil value means: it is served, and counts for its source.
    private func entryRefusal(_ channel: any Channel) -> RequestGuard.EntryRefusal? {
        if tls == nil, let plainNetworks, !plainNetworks.allow(channel.remoteAddress) {
            return .init(status: .forbidden, detail: PlainHTTPNetworks.refusal)
        }
        guard !sources.register(channel) else { return nil }
        return .init(
            status: .serviceUnavailable,
            detail: "This address has \(limits.sourceConnections) open connections; reuse them or close some.")
    }

    package func handlerRemoved(context: ChannelHandlerContext) { guardContext = nil }

    /// Refuses a request that the HTTP codec could not read, for example an invalid head.
    package func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let guardContext, !(error is IOError), !(error is ChannelError) else {
            context.fireErrorCaught(error)
            return
        }
        guard let requestGuard = guardContext.handler as? RequestGuard else { return }
        requestGuard.refuse(guardContext, .badRequest, "The request is not valid HTTP/1.1; correct its form.")
    }
}

/// The networks that may use plain HTTP. The loopback addresses are always among them; pure.
///
/// Only the address of the connection counts. A header or a proxy cannot change it.
package struct PlainHTTPNetworks: Sendable {
    private let ranges: [IPRange]
    private static let loopback = ["127.0.0.0/8", "::1"].compactMap { IPRange($0) }

    /// The error text for callers from other networks.
    package static let refusal =
        "Plain HTTP is not accepted from this address; use https, or add its network to MSS_INGEST_PLAIN_HTTP_NETWORKS."

    package init(_ ranges: [IPRange]) { self.ranges = ranges + Self.loopback }

    /// Whether a connection from this address may use plain HTTP.
    package func allow(_ address: SocketAddress?) -> Bool {
        guard let address = IPAddress(address) else { return false }
        return ranges.contains { $0.contains(address) }
    }
}

/// Notifies the guard of received bytes before they are decoded, and of a shutdown.
private final class FirstByteWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let requestGuard: RequestGuard

    init(_ requestGuard: RequestGuard) { self.requestGuard = requestGuard }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        requestGuard.bytesArrived(Self.unwrapInboundIn(data))
        context.fireChannelRead(data)
    }

    /// Reads once ahead of the response. NIO's pipeline handler does not read before the response, so each request
    /// would deregister the socket from the selector and register it again. The pipeline handler buffers early bytes.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if requestGuard.takeReadAhead(), context.channel.isWritable { context.read() }
    }

    /// NIO's pipeline handler would close an idle connection at once, even when the next call is already in transit.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
        requestGuard.drain()
    }
}
