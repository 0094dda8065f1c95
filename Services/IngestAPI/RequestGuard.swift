import NIOCore
import NIOHTTP1

/// Watches one connection's time and order: answers what is too slow, too large or broken, and closes politely.
///
/// It stands right behind the decoder, so that the answers it makes itself leave like any other.
final class RequestGuard: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// What is being read.
    private enum Reading {
        case nothing
        case head
        case body
    }

    private let limits: ConnectionLimits
    private let metrics: IngestMetrics
    private var reading = Reading.nothing
    /// Whether the line of the current head that holds the URI is complete.
    private var hasRequestLine = false
    /// Requests whose head was read and whose answer is not written to its end.
    private var openRequests = 0
    private var isAnswerBegun = false
    /// Whether the caller ends the connection with the request read last, as every HTTP/1.0 caller does by default.
    private var isLastRequest = false
    private var closesAfterAnswer = false
    private var isClosing = false
    private var deadline = NIODeadline.distantFuture
    private var alarm: Scheduled<Void>?

    init(limits: ConnectionLimits, metrics: IngestMetrics) {
        self.limits = limits
        self.metrics = metrics
    }

    func handlerAdded(context: ChannelHandlerContext) {
        if context.channel.isActive { begin(context) }
    }

    func channelActive(context: ChannelHandlerContext) {
        begin(context)
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        alarm?.cancel()
        context.fireChannelInactive()
    }

    /// Bytes came in, before they are decoded: a head may begin here.
    func bytesArrived(_ bytes: ByteBuffer) {
        if reading == .nothing, openRequests == 0, !isClosing {
            reading = .head
            hasRequestLine = false
            deadline = .now() + limits.head
        }
        if reading == .head, !hasRequestLine {
            hasRequestLine = bytes.readableBytesView.contains(UInt8(ascii: "\n"))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Nobody reads the rest of a request that was answered with a close.
        guard !isClosing else { return }
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            reading = .body
            openRequests += 1
            deadline = .now() + limits.body
            isLastRequest = !head.isKeepAlive
            guard Self.isSound(head) else {
                refuse(
                    context, .badRequest, "Host or Transfer-Encoding is wrong; send one Host, and chunked or nothing.")
                return
            }
            continueIfExpected(head, context)
        case .body: break
        case .end:
            reading = .nothing
            deadline = .now() + limits.answer
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosing else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch Self.unwrapOutboundIn(data) {
        case .head(let head):
            isAnswerBegun = true
            closesAfterAnswer = (isLastRequest && openRequests == 1) || head.headers["Connection"].contains("close")
        case .body: break
        case .end:
            isAnswerBegun = false
            openRequests -= 1
            if openRequests == 0 { deadline = .now() + limits.idle }
            if closesAfterAnswer {
                context.write(data, promise: promise)
                linger(context)
                return
            }
        }
        context.write(data, promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if isClosing, let event = event as? ChannelEvent, event == .inputClosed {
            context.close(promise: nil)
        }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? HTTPParserError else {
            context.fireErrorCaught(error)
            return
        }
        switch error {
        case .headerOverflow where hasRequestLine:
            refuse(
                context, .requestHeaderFieldsTooLarge,
                "The headers have more than \(limits.headBytes) bytes or \(limits.headerFields) fields; send fewer.")
        case .headerOverflow: refuse(context, .uriTooLong, "The URI is too long; send parameters in the body.")
        default: refuse(context, .badRequest, "The request is not valid HTTP/1.1; correct its form.")
        }
    }

    /// Answers what was being read when nothing else is in work, and closes in any case.
    func refuse(_ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ detail: String) {
        guard !isClosing else { return }
        let isAnswerable = !isAnswerBegun && openRequests == (reading == .body ? 1 : 0)
        if isAnswerable {
            let answer = APIAnswer.refusal(status, detail)
            metrics.answered(answer)
            let requestID = RequestName.make()
            let body = ByteBuffer(string: answer.body(requestID: requestID))
            var headers = HTTPHeaders(answer.headers(requestID: requestID))
            headers.add(name: "Content-Length", value: String(body.readableBytes))
            headers.add(name: "Connection", value: "close")
            let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
            context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.write(Self.wrapOutboundOut(.end(nil)), promise: nil)
        }
        linger(context)
    }

    private func begin(_ context: ChannelHandlerContext) {
        guard alarm == nil else { return }
        deadline = .now() + limits.idle
        setAlarm(context)
    }

    /// One alarm at a time, no later than the shortest limit, so that a request costs no rescheduling.
    private func setAlarm(_ context: ChannelHandlerContext) {
        let latest = NIODeadline.now() + min(limits.head, limits.linger * 5)
        alarm = context.eventLoop.assumeIsolated().scheduleTask(deadline: min(deadline, latest)) {
            self.checkTime(context)
        }
    }

    private func checkTime(_ context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        if NIODeadline.now() >= deadline {
            if isClosing || reading == .nothing {
                context.close(promise: nil)
                return
            }
            refuse(context, .requestTimeout, "The request took too long to arrive; send it at once.")
        }
        setAlarm(context)
    }

    /// Ends the output and leaves the caller time to read it: closing with unread input would discard the answer.
    private func linger(_ context: ChannelHandlerContext) {
        isClosing = true
        deadline = .now() + limits.linger
        alarm?.cancel()
        setAlarm(context)
        context.flush()
        context.close(mode: .output, promise: nil)
    }

    /// What the decoder lets pass and a proxy before us might read differently (reliability SEC5).
    private static func isSound(_ head: HTTPRequestHead) -> Bool {
        let encodings = head.headers["Transfer-Encoding"]
        let hosts = head.headers["Host"].count
        return (encodings.isEmpty || encodings.map { $0.lowercased() } == ["chunked"])
            && (hosts == 1 || (hosts == 0 && head.version == .http1_0))
    }

    private func continueIfExpected(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        guard head.headers["Expect"].contains(where: { $0.lowercased() == "100-continue" }),
            let length = head.headers.first(name: "Content-Length").flatMap({ Int($0) }),
            let call = APICall(path: Substring(head.uri.prefix { $0 != "?" })), length <= call.bodyBytes
        else { return }
        let answer = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(Self.wrapOutboundOut(.head(answer)), promise: nil)
    }
}
