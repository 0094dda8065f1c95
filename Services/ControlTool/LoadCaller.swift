import NIOCore

/// A backend's keep-alive connection in a load run: one call at a time, as little work as possible, since the
/// generator shares the machine with what it measures.
final class LoadCaller: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let onAnswer: (_ caller: LoadCaller, _ code: String) -> Void
    private var context: ChannelHandlerContext?
    private var received = ByteBuffer()

    init(onAnswer: @escaping (_ caller: LoadCaller, _ code: String) -> Void) { self.onAnswer = onAnswer }

    func channelActive(context: ChannelHandlerContext) { self.context = context }

    func channelInactive(context: ChannelHandlerContext) {
        self.context = nil
        onAnswer(self, "closed")
    }

    /// Sends a call; the answer comes through `onAnswer`.
    func call(_ request: String) {
        guard let context else { return onAnswer(self, "closed") }
        received.clear()
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: request)), promise: nil)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        received.writeBuffer(&part)
        // Answers are one short JSON object with no brace inside: its end is the answer's.
        let bytes = received.readableBytesView
        guard bytes.last == UInt8(ascii: "}") else { return }
        let text = String(decoding: bytes, as: UTF8.self)
        let code = text.split(separator: "\"msg\":\"", maxSplits: 1).last?.prefix { $0 != "\"" } ?? "unreadable"
        received.clear()
        onAnswer(self, String(code))
    }
}
