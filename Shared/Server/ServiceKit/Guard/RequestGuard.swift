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

    /// The reason to refuse the whole connection.
    struct EntryRefusal {
        let status: HTTPResponseStatus
        let detail: String
    }

    /// The response to the request whose head was read last.
    private enum Answer: Equatable {
        /// No request was read, or its response is complete.
        case none
        /// `isLast`: the connection ends after it, as is the default of HTTP/1.0.
        case awaited(isLast: Bool)
        /// `isLast`: it announces the end of the connection.
        case begun(isLast: Bool)

        var isLast: Bool {
            switch self {
            case .none: false
            case .awaited(let isLast), .begun(let isLast): isLast
            }
        }
    }

    private let limits: ConnectionLimits
    private let server: any GuardedServer
    /// A nil value means: the connection is served.
    private let entryRefusal: EntryRefusal?
    private var reading = RequestReading()
    private var answer = Answer.none
    private var unsentAnswers = UnsentAnswers()
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
        if reading.part == .nothing, answer == .none, !isClosing {
            reading.headBegan()
            deadline = .now() + limits.head
        }
        let hasLongChunkHeaders = reading.bytesArrived(bytes, overheadMax: limits.headBytes)
        if hasLongChunkHeaders, let context {
            refuse(context, .badRequest, "The chunk headers are longer than the body; send Content-Length.")
        }
    }

    /// Whether to read ahead: a request is complete and waits for its response. Returns true once for each request.
    func takeReadAhead() -> Bool {
        reading.dequeueReadAhead() && answer != .none && !isClosing
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // After a closing response, the rest of the request is discarded.
        guard !isClosing else { return }
        switch Self.unwrapInboundIn(data) {
        case .head(let head):
            reading.bodyBegan()
            answer = .awaited(isLast: !head.isKeepAlive || RequestHeadCheck.asksForUpgrade(head))
            deadline = .now() + limits.body
            if let fault = RequestHeadCheck.fault(of: head) {
                refuse(context, .badRequest, fault)
                return
            }
            continueIfExpected(head, context)
        case .body(let part): reading.bodyArrived(part.readableBytes)
        case .end:
            reading.requestEnded()
            deadline = .now() + (answer == .none ? limits.idle : limits.answer)
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
            let isLast = answer.isLast || isDraining || head.headers["Connection"].contains("close")
            answer = .begun(isLast: isLast)
            if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
            context.write(Self.wrapOutboundOut(.head(head)), promise: promise)
        case .body:
            // A long response, for example a live page, gets the full time again after each part.
            if reading.part == .nothing { deadline = .now() + limits.answer }
            context.write(data, promise: promise)
        case .end:
            let isLast = answer == .begun(isLast: true)
            answer = .none
            // A response before the end of the body does not extend the time for the body.
            if reading.part != .body { deadline = .now() + (isDraining ? limits.drain : limits.idle) }
            // Set before the write, because the write can deliver the next request.
            isClosing = isLast
            context.write(data, promise: watched(promise, context))
            if isLast { linger(context) }
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
        case .headerOverflow where reading.hasRequestLine:
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
        guard let context, reading.part == .nothing, answer == .none, !isClosing else { return }
        deadline = min(deadline, .now() + limits.drain)
        alarm?.cancel()
        setAlarm(context)
    }

    /// Sends a refusal if no other response is in progress, and closes the connection in any case.
    func refuse(_ context: ChannelHandlerContext, _ status: HTTPResponseStatus, _ detail: String) {
        guard !isClosing else { return }
        let isAnswerable =
            switch answer {
            case .none: reading.part != .body
            case .awaited: reading.part == .body
            case .begun: false
            }
        if isAnswerable, let context = try? context.pipeline.syncOperations.context(handler: pipelineHandler) {
            let refusal = server.refusal(status, detail)
            let body = ByteBuffer(string: refusal.body)
            var headers = HTTPHeaders(refusal.headers)
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
        if reading.part == .body { context.fireErrorCaught(ChannelError.inputClosed) }
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
        let due = min(deadline, unsentAnswers.deadline, latest)
        alarm = context.eventLoop.assumeIsolated().scheduleTask(deadline: due) { self.checkTime(context) }
    }

    private func checkTime(_ context: ChannelHandlerContext) {
        guard context.channel.isActive else { return }
        guard NIODeadline.now() < unsentAnswers.deadline, NIODeadline.now() < deadline || !isClosing else {
            cut(context)
            return
        }
        guard NIODeadline.now() < deadline else {
            if reading.part == .nothing {
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
        unsentAnswers.written(stallsAt: .now() + limits.stall)
        promise.futureResult.assumeIsolated().whenComplete { _ in
            self.unsentAnswers.sent(stallsAt: .now() + self.limits.stall)
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

/// The responses that are written but not sent, because the caller does not read; pure.
private struct UnsentAnswers {
    private var count = 0
    /// When the caller has not read for too long.
    private(set) var deadline = NIODeadline.distantFuture

    /// Records a written response. `stallsAt`: the deadline, unless an earlier response has set it.
    mutating func written(stallsAt: NIODeadline) {
        if count == 0 { deadline = stallsAt }
        count += 1
    }

    /// Records that a response was sent. `stallsAt`: the deadline for the others.
    mutating func sent(stallsAt: NIODeadline) {
        count -= 1
        deadline = count == 0 ? .distantFuture : stallsAt
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
