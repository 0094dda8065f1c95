import NIOCore
import NIOHTTP1
import ServerTLS

/// Watches one connection's time and order: answers what is too slow, too large or broken, and closes politely.
///
/// It stands behind NIO's pipeline handler, which gives it one request at a time: the next one, or what is broken
/// there, comes when the one before is answered, and never when that answer closes. Its own answers pass that handler
/// by, which takes no answer where it knows of no request.
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
    private let server: any GuardedServer
    /// Why the connection is not served at all.
    struct EntryRefusal {
        let status: HTTPResponseStatus
        let detail: String
    }

    /// Nil: it is served.
    private let entryRefusal: EntryRefusal?
    private var reading = Reading.nothing
    /// Whether the line of the current head that holds the URI is complete.
    private var hasRequestLine = false
    /// Whether a request's head was read and its answer is not written to its end.
    private var isRequestOpen = false
    private var isAnswerBegun = false
    /// Whether the connection ends with this request, as every HTTP/1.0 caller wishes by default.
    private var isLastRequest = false
    /// Bytes since the head ended, those that are chunk headers and trailers too.
    private var arrivedBytes = 0
    /// Bytes of the body itself.
    private var bodyBytes = 0
    /// Answers that are written and not sent, because the caller does not read.
    private var unsentAnswers = 0
    private var stallDeadline = NIODeadline.distantFuture
    /// Whether a request has come to its end since the last reading ahead.
    private var mayReadAhead = false
    private var closesAfterAnswer = false
    /// Whether the process stops: every answer is the connection's last.
    private var isDraining = false
    private var isClosing = false
    private var deadline = NIODeadline.distantFuture
    private var alarm: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// Of the handler before this one: where this one's own answers go.
    private let pipelineHandler: HTTPServerPipelineHandler

    init(
        limits: ConnectionLimits, server: any GuardedServer, entryRefusal: EntryRefusal?,
        behind pipelineHandler: HTTPServerPipelineHandler
    ) {
        self.limits = limits
        self.server = server
        self.entryRefusal = entryRefusal
        self.pipelineHandler = pipelineHandler
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        if context.channel.isActive { begin(context) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

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
        if reading == .nothing, !isRequestOpen, !isClosing {
            reading = .head
            hasRequestLine = false
            deadline = .now() + limits.head
        }
        if reading == .head, !hasRequestLine {
            hasRequestLine = bytes.readableBytesView.contains(UInt8(ascii: "\n"))
        }
        if reading == .body, let context {
            arrivedBytes += bytes.readableBytes
            // The decoder itself sets no bound to chunk extensions, leading zeros and the like.
            if arrivedBytes - bytes.readableBytes > limits.headBytes + 16 * bodyBytes {
                refuse(context, .badRequest, "The chunk headers are longer than the body; send Content-Length.")
            }
        }
    }

    /// Whether the answer to a whole request is awaited that nothing was read ahead of; each may be asked for once.
    func takeReadAhead() -> Bool {
        defer { mayReadAhead = false }
        return mayReadAhead && isRequestOpen && reading == .nothing && !isClosing
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Nobody reads the rest of a request that was answered with a close.
        guard !isClosing else { return }
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            reading = .body
            isRequestOpen = true
            (arrivedBytes, bodyBytes) = (0, 0)
            deadline = .now() + limits.body
            isLastRequest = !head.isKeepAlive || HeadForm.asksForUpgrade(head)
            if let fault = HeadForm.fault(of: head) {
                refuse(context, .badRequest, fault)
                return
            }
            continueIfExpected(head, context)
        case .body(let part): bodyBytes += part.readableBytes
        case .end:
            reading = .nothing
            mayReadAhead = true
            deadline = .now() + (isRequestOpen ? limits.answer : limits.idle)
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosing else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        switch Self.unwrapOutboundIn(data) {
        case .head(var head):
            isAnswerBegun = true
            closesAfterAnswer = isLastRequest || isDraining || head.headers["Connection"].contains("close")
            if closesAfterAnswer { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            // An answer that goes on for long, such as a live page, has its time anew with every part that is taken.
            if reading == .nothing { deadline = .now() + limits.answer }
            context.write(data, promise: promise)
        case .end:
            isAnswerBegun = false
            isRequestOpen = false
            // An answer that comes before the end of the body gives the rest of it no more time.
            if reading != .body { deadline = .now() + (isDraining ? limits.drain : limits.idle) }
            // Before the write: with it comes the next request.
            isClosing = closesAfterAnswer
            context.write(data, promise: watched(promise, context))
            if closesAfterAnswer { linger(context) }
        }
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

    /// The process stops: a call that is under way is answered, and so is one that comes soon.
    func drain() {
        isDraining = true
        guard let context, reading == .nothing, !isRequestOpen, !isClosing else { return }
        deadline = min(deadline, .now() + limits.drain)
        alarm?.cancel()
        setAlarm(context)
    }

    /// Answers what was being read when nothing else is in work, and closes in any case.
    func refuse(_ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ detail: String) {
        guard !isClosing else { return }
        let isAnswerable = !isAnswerBegun && isRequestOpen == (reading == .body)
        if isAnswerable, let context = try? context.pipeline.syncOperations.context(handler: pipelineHandler) {
            let answer = server.refusal(status, detail)
            let body = ByteBuffer(string: answer.body)
            var headers = HTTPHeaders(answer.headers)
            headers.add(name: "Content-Length", value: String(body.readableBytes))
            headers.add(name: "Connection", value: "close")
            let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
            context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
            context.write(Self.wrapOutboundOut(.end(nil)), promise: nil)
        }
        isClosing = true
        linger(context)
        // Otherwise the end of the connection would look like the end of the body, and a push cut there be stored.
        if reading == .body { context.fireErrorCaught(ChannelError.inputClosed) }
    }

    private func begin(_ context: ChannelHandlerContext) {
        guard alarm == nil else { return }
        deadline = .now() + limits.idle
        setAlarm(context)
        if let entryRefusal { refuse(context, entryRefusal.status, entryRefusal.detail) }
    }

    /// One alarm at a time, no later than the shortest limit, so that a request costs no rescheduling.
    private func setAlarm(_ context: ChannelHandlerContext) {
        let latest = NIODeadline.now() + min(limits.head, limits.linger * 5)
        alarm = context.eventLoop.assumeIsolated().scheduleTask(deadline: min(deadline, stallDeadline, latest)) {
            self.checkTime(context)
        }
    }

    private func checkTime(_ context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        guard NIODeadline.now() < stallDeadline, NIODeadline.now() < deadline || !isClosing else {
            cut(context)
            return
        }
        guard NIODeadline.now() < deadline else {
            if reading == .nothing {
                isClosing = true
                linger(context)
            } else {
                refuse(context, .requestTimeout, "The request took too long to arrive; send it at once.")
            }
            return
        }
        setAlarm(context)
    }

    /// Ends the connection of a caller who has had the time to read; its farewell is not waited for.
    private func cut(_ context: ChannelHandlerContext) {
        context.pipeline.syncOperations.closePastTLS()
    }

    /// Ends the output and leaves the caller time to read it: closing with unread input would discard the answer.
    private func linger(_ context: ChannelHandlerContext) {
        deadline = .now() + limits.linger
        alarm?.cancel()
        setAlarm(context)
        context.flush()
        context.close(mode: .output, promise: nil)
    }

    /// Gives the caller time to read an answer, counted anew with each one that is sent.
    private func watched(
        _ promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext
    ) -> EventLoopPromise<Void> {
        let promise = promise ?? context.eventLoop.makePromise()
        if unsentAnswers == 0 { stallDeadline = .now() + limits.stall }
        unsentAnswers += 1
        promise.futureResult.assumeIsolated().whenComplete { _ in
            self.unsentAnswers -= 1
            self.stallDeadline = self.unsentAnswers == 0 ? .distantFuture : .now() + self.limits.stall
        }
        return promise
    }

    private func continueIfExpected(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        guard head.headers["Expect"].contains(where: { $0.lowercased() == "100-continue" }),
            let length = head.headers.first(name: "Content-Length").flatMap({ Int($0) }),
            server.takesBody(of: head, bytes: length)
        else { return }
        let answer = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(Self.wrapOutboundOut(.head(answer)), promise: nil)
    }
}
