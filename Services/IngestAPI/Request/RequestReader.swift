import NIOCore
import NIOHTTP1

/// Reads the requests of one connection: refuses a request by its head or its body length, and yields the others when
/// they are complete.
///
/// The guard's pipelining handler comes before it and passes one request at a time. A truncated request is never
/// yielded, so that no part of a push is stored.
final class RequestReader: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart

    private let responder: IngestResponder
    private let complete: AsyncStream<IngestRequest>.Continuation
    /// The value is nil between requests, and while the rest of an answered request is skipped.
    private var request: IngestRequest?
    private var isReadSuspended = false

    /// - Parameter complete: receives the complete requests, and is finished when the connection can send no more.
    init(responder: IngestResponder, complete: AsyncStream<IngestRequest>.Continuation) {
        self.responder = responder
        self.complete = complete
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head): begin(head, context.channel)
        case .body(let part): add(part, context.channel)
        case .end:
            guard let request else { return }
            self.request = nil
            complete.yield(request)
        }
    }

    private func begin(_ head: HTTPRequestHead, _ channel: any Channel) {
        switch responder.begin(head) {
        case .request(let request): self.request = request
        case .answered(let response): channel.send(response)
        }
    }

    private func add(_ part: ByteBuffer, _ channel: any Channel) {
        guard var request else { return }
        self.request = nil
        // The budget is charged as bytes arrive; a Content-Length alone reserves nothing.
        guard responder.bodies.reserve(part.readableBytes) else {
            responder.bodies.release(request.body.count)
            return channel.send(responder.response(to: request, Self.full))
        }
        request.body.append(contentsOf: part.readableBytesView)
        guard request.body.count <= request.call.bodyBytes else {
            responder.bodies.release(request.body.count)
            return channel.send(responder.response(to: request, RequestRules.bodyTooLong(of: request.call)))
        }
        self.request = request
    }

    /// The refusal when the budget is used up; the rest of the body is not read.
    private static var full: HTTPAnswer {
        var answer = HTTPAnswer.unavailable("This process is reading too many bodies; repeat the call.")
        answer.closesConnection = true
        return answer
    }

    /// Stops reading while the caller does not read its responses.
    func read(context: ChannelHandlerContext) {
        isReadSuspended = !context.channel.isWritable
        if !isReadSuspended { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if isReadSuspended, context.channel.isWritable {
            isReadSuspended = false
            context.read()
        }
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if let event = event as? ChannelEvent, event == .inputClosed { end() }
        context.fireUserInboundEventTriggered(event)
    }

    func channelInactive(context: ChannelHandlerContext) {
        end()
        context.fireChannelInactive()
    }

    /// The guard has already answered a faulty request, or the connection is broken.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end()
        if !(error is ChannelError) { context.close(promise: nil) }
    }

    private func end() {
        if let request { responder.bodies.release(request.body.count) }
        request = nil
        complete.finish()
    }
}
