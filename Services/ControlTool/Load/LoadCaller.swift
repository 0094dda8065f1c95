import NIOCore

/// A backend's keep-alive connection in a load run: one call at a time.
final class LoadCaller: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A call under way.
    struct Call {
        let stream: Int
        /// The number of its first push; the others follow it.
        let first: Int
        let due: Int64
    }

    /// What stands in the place of the codes when the connection ended before the answer.
    static let closed = ["closed"]

    private let run: LoadRun
    private var context: ChannelHandlerContext?
    private var call: Call?
    private var answer = AnswerStream()
    /// Of each stream, as it was last sent.
    private var requests: [ByteBuffer]

    init(_ run: LoadRun) {
        self.run = run
        requests = run.templates.map { $0.makeBuffer() }
    }

    func channelActive(context: ChannelHandlerContext) {
        self.context = context
        run.idle(self)
    }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        answer.clear()
        run.callerEnded(self, take())
    }

    /// Sends a call; the run hears of the answer.
    ///
    /// - Returns: false when the connection has ended; nothing was sent then.
    func send(_ call: Call, _ template: CallTemplate, user: (Int) -> Int) -> Bool {
        guard let context else { return false }
        self.call = call
        template.fill(&requests[call.stream], first: call.first, due: call.due, user: user)
        run.traffic.httpBytesOut += requests[call.stream].readableBytes
        context.writeAndFlush(wrapOutboundOut(requests[call.stream]), promise: nil)
        return true
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        run.traffic.httpBytesIn += part.readableBytes
        guard let codes = answer.take(&part), let call = take() else { return }
        run.answered(call, codes)
        // Another connection takes the place of one that the server ends.
        if answer.isLast { context.close(promise: nil) } else { run.idle(self) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func take() -> Call? {
        defer { call = nil }
        return call
    }
}
