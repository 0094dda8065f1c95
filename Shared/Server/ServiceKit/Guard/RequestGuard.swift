import NIOCore
package import NIOHTTP1
import ServerTLS

/// Enforces the time, size and order limits of one HTTP connection. It refuses slow, large and malformed requests with
/// a response, and closes the connection so that the caller can read it.
///
/// NIO's pipeline handler is in front of it and delivers one request at a time: the next request, or a parse error,
/// comes after the previous response, and never after a closing one. The guard's own responses bypass the pipeline
/// handler, which accepts none outside of a request.
final class RequestGuard: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// The part of a request that is being read.
    private enum Reading {
        case nothing
        case head
        case body
    }

    private let limits: ConnectionLimits
    private let server: any GuardedServer
    /// The reason to refuse the whole connection.
    struct EntryRefusal {
        let status: HTTPResponseStatus
        let detail: String
    }

    /// A nil value means: the connection is served.
    private let entryRefusal: EntryRefusal?
    private var reading = Reading.nothing
    /// Whether the request line of the current head is complete.
    private var hasRequestLine = false
    /// Whether a request's head was read and its response is not complete.
    private var isRequestOpen = false
    private var isAnswerBegun = false
    /// Whether the connection ends after this request, as is the default of HTTP/1.0.
    private var isLastRequest = false
    /// Bytes since the end of the head, with chunk headers and trailers.
    private var arrivedBytes = 0
    /// Bytes of the body itself.
    private var bodyBytes = 0
    /// Responses that are written but not sent, because the caller does not read.
    private var unsentAnswers = 0
    private var stallDeadline = NIODeadline.distantFuture
    /// Whether a request has ended since the last read-ahead.
    private var mayReadAhead = false
    private var closesAfterAnswer = false
    /// Whether the process is shutting down, so that every response is the last of its connection.
    private var isDraining = false
    private var isClosing = false
    private var deadline = NIODeadline.distantFuture
    private var alarm: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// The handler in front of this one; the guard writes its own responses from its position.
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

    /// Handles received bytes before they are decoded. A head can begin here.
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
            // The decoder does not limit chunk extensions, leading zeros and similar overhead.
            if arrivedBytes - bytes.readableBytes > limits.headBytes + 16 * bodyBytes {
                refuse(context, .badRequest, "The chunk headers are longer than the body; send Content-Length.")
            }
        }
    }

    /// Whether to read ahead: a request is complete and waits for its response. Returns true once for each request.
    func takeReadAhead() -> Bool {
        defer { mayReadAhead = false }
        return mayReadAhead && isRequestOpen && reading == .nothing && !isClosing
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After a closing response, the rest of the request is discarded.
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
            // A long response, for example a live page, gets the full time again after each part.
            if reading == .nothing { deadline = .now() + limits.answer }
            context.write(data, promise: promise)
        case .end:
            isAnswerBegun = false
            isRequestOpen = false
            // A response before the end of the body does not extend the time for the body.
            if reading != .body { deadline = .now() + (isDraining ? limits.drain : limits.idle) }
            // Set before the write, because the write can deliver the next request.
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
                "The headers exceed \(limits.headBytes) bytes or \(limits.headerFields) fields; send fewer.")
        case .headerOverflow: refuse(context, .uriTooLong, "The URI is too long; send parameters in the body.")
        default: refuse(context, .badRequest, "The request is not valid HTTP/1.1; correct its form.")
        }
    }

    /// Starts the shutdown. Calls in flight are answered, and so are calls that arrive within the drain time.
    func drain() {
        isDraining = true
        guard let context, reading == .nothing, !isRequestOpen, !isClosing else { return }
        deadline = min(deadline, .now() + limits.drain)
        alarm?.cancel()
        setAlarm(context)
    }

    /// Sends a refusal if no other response is in progress, and closes the connection in any case.
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
        // Without this error, the end of the connection would look like the end of the body, and a truncated push would
        // be stored.
        if reading == .body { context.fireErrorCaught(ChannelError.inputClosed) }
    }

    private func begin(_ context: ChannelHandlerContext) {
        guard alarm == nil else { return }
        deadline = .now() + limits.idle
        setAlarm(context)
        if let entryRefusal { refuse(context, entryRefusal.status, entryRefusal.detail) }
    }

    /// Schedules one check at a time, no later than the shortest limit, so that a request needs no rescheduling.
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

    /// Closes the connection at once, without waiting for the caller's TLS close.
    private func cut(_ context: ChannelHandlerContext) {
        context.pipeline.syncOperations.closePastTLS()
    }

    /// Ends the output and gives the caller time to read it. Closing with unread input would discard the response.
    private func linger(_ context: ChannelHandlerContext) {
        deadline = .now() + limits.linger
        alarm?.cancel()
        setAlarm(context)
        context.flush()
        context.close(mode: .output, promise: nil)
    }

    /// Restarts the caller's time to read responses each time a response has been sent.
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

/// Decisions of a server for its connection guard. The guard answers requests that never reach the server.
package protocol GuardedServer: Sendable {
    /// Makes the response to a refused request.
    ///
    /// - Parameters:
    ///   - status: 503 if the caller may repeat the request later; otherwise the caller must change it.
    ///   - detail: a sentence that tells the caller how to continue.
    func refusal(_ status: HTTPResponseStatus, _ detail: String) -> GuardRefusal

    /// Whether to send `100 Continue` for a request that announces this many bytes (`Expect: 100-continue`).
    func takesBody(of head: HTTPRequestHead, bytes: Int) -> Bool
}

/// Headers and body of a refusal. The guard adds status, length and connection headers.
package struct GuardRefusal: Sendable {
    package let headers: [(String, String)]
    package let body: String

    package init(headers: [(String, String)], body: String) {
        self.headers = headers
        self.body = body
    }
}
