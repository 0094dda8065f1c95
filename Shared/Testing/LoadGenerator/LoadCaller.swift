import NIOCore

/// A backend's keep-alive connection in a load run. It has one call at a time.
final class LoadCaller: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A call in flight.
    struct Call {
        let stream: Int
        /// Number of the first push. The numbers of the others follow.
        let first: Int
        let due: Int64
    }

    /// Replaces the codes if the connection ended before the response.
    static let closed = ["closed"]

    private let run: LoadRun
    private var context: ChannelHandlerContext?
    private var call: Call?
    private var answer = AnswerStream()
    /// The last request of each stream.
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
        run.callerEnded(self, removeCall())
    }

    /// Sends a call. The run receives the response through `answered`.
    ///
    /// - Returns: false if the connection has ended. Then nothing was sent.
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
        guard let codes = answer.append(&part), let call = removeCall() else { return }
        run.answered(call, codes)
        // The run opens another connection for one that the server closes.
        if answer.isLast { context.close(promise: nil) } else { run.idle(self) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private func removeCall() -> Call? {
        defer { call = nil }
        return call
    }
}
