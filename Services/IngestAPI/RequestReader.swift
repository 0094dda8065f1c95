import NIOCore
import NIOHTTP1

/// Reads one connection's requests: answers at once what the head, or the length of the body, decides, and hands on the
/// others when they are whole.
///
/// It stands behind the guard, whose pipeline handler gives one request at a time. A request that is cut is never handed
/// on, so that a part of a push is not stored.
final class RequestReader: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart

    private let responder: IngestResponder
    private let whole: AsyncStream<IngestRequest>.Continuation
    /// Nil: between requests, or the rest of one is skipped that is answered.
    private var request: IngestRequest?
    private var isReadHeld = false

    /// - Parameter whole: gets the requests; it ends when no more can come.
    init(responder: IngestResponder, whole: AsyncStream<IngestRequest>.Continuation) {
        self.responder = responder
        self.whole = whole
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head): begin(head, context.channel)
        case .body(let part): add(part, context.channel)
        case .end:
            guard let request else { return }
            self.request = nil
            whole.yield(request)
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
        // As it arrives: who only says that much will come keeps nobody out.
        guard responder.bodies.take(part.readableBytes) else {
            responder.bodies.giveBack(request.body.count)
            return channel.send(responder.response(to: request, Self.full))
        }
        request.body.append(contentsOf: part.readableBytesView)
        guard request.body.count <= request.call.bodyBytes else {
            responder.bodies.giveBack(request.body.count)
            return channel.send(responder.response(to: request, RequestRules.bodyTooLong(of: request.call)))
        }
        self.request = request
    }

    /// The rest of the body is not read.
    private static var full: HTTPAnswer {
        var answer = HTTPAnswer.unavailable("Too many bodies are being read here; repeat the call.")
        answer.closesConnection = true
        return answer
    }

    /// A caller who does not take answers is not read from.
    func read(context: ChannelHandlerContext) {
        isReadHeld = !context.channel.isWritable
        if !isReadHeld { context.read() }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if isReadHeld, context.channel.isWritable {
            isReadHeld = false
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

    /// The guard has answered what is wrong with a request, or the connection is broken.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        end()
        if !(error is ChannelError) { context.close(promise: nil) }
    }

    private func end() {
        if let request { responder.bodies.giveBack(request.body.count) }
        request = nil
        whole.finish()
    }
}
