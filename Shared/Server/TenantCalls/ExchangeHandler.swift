import NIOCore
package import NIOHTTP1
import NIOTLS

/// Sends requests on one connection, one at a time, and collects each response.
///
/// Unexpected bytes and errors close the connection, so that the rest of one response is never read as the next.
final class ExchangeHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias OutboundIn = TenantRequest
    typealias OutboundOut = HTTPClientRequestPart

    private var promise: EventLoopPromise<TenantResponse>?
    private var head: HTTPResponseHead?
    private var body: [UInt8] = []
    /// The promise of the TLS handshake; nil after it, and without TLS.
    private var ready: EventLoopPromise<Void>?

    private let bodyMax: Int

    /// - Parameters:
    ///   - ready: succeeds after the TLS handshake; nil for plain connections.
    ///   - bodyMax: maximum bytes of a response body.
    init(ready: EventLoopPromise<Void>?, bodyMax: Int) {
        self.ready = ready
        self.bodyMax = bodyMax
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise written: EventLoopPromise<Void>?) {
        let request = unwrapOutboundIn(data)
        guard promise == nil, context.channel.isActive else {
            request.promise.fail(CalloutError.closed)
            written?.fail(CalloutError.closed)
            return
        }
        promise = request.promise
        context.write(wrapOutboundOut(.head(request.head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(request.body))), promise: nil)
        context.write(wrapOutboundOut(.end(nil)), promise: written)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            guard promise != nil, self.head == nil else { return fail(context, CalloutError.closed) }
            self.head = head
        case .body(let bytes):
            guard body.count + bytes.readableBytes <= bodyMax else {
                return fail(context, CalloutError.tooLong)
            }
            body += bytes.readableBytesView
        case .end:
            guard let promise, let head else { return fail(context, CalloutError.closed) }
            let answer = TenantResponse(
                status: head.status, headers: head.headers, body: body, keepsConnection: head.isKeepAlive)
            (self.promise, self.head, body) = (nil, nil, [])
            promise.succeed(answer)
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case TLSUserEvent.handshakeCompleted:
            ready?.succeed()
            ready = nil
        case is IdleStateHandler.IdleStateEvent: context.close(promise: nil)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { fail(context, error) }

    func channelInactive(context: ChannelHandlerContext) {
        fail(context, CalloutError.closed)
        context.fireChannelInactive()
    }

    func handlerRemoved(context: ChannelHandlerContext) { ready?.fail(CalloutError.closed) }

    private func fail(_ context: ChannelHandlerContext, _ error: any Error) {
        ready?.fail(error)
        promise?.fail(error)
        (ready, promise) = (nil, nil)
        context.close(promise: nil)
    }
}

/// A request to a tenant's endpoint, with the promise of its response.
struct TenantRequest: Sendable {
    let head: HTTPRequestHead
    let body: ByteBuffer
    let promise: EventLoopPromise<TenantResponse>
}

/// A complete response of a tenant's endpoint.
package struct TenantResponse: Sendable {
    package let status: HTTPResponseStatus
    package let headers: HTTPHeaders
    package let body: [UInt8]
    /// Whether the connection can be used for another request.
    package let keepsConnection: Bool
}
