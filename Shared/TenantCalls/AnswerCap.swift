import NIOCore

/// Ends a connection on which more bytes come than an answer can have, whatever they are: heads without end, 1xx
/// answers, chunk extensions, trailers. It stands before the HTTP decoder, which has its own idea of what is much.
final class AnswerCap: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Bytes of one answer on the wire.
    private let bytesMax: Int
    private var bytes = 0

    /// - Parameter bodyMax: bytes of an answer's body; as much again is for head and framing.
    init(bodyMax: Int) { bytesMax = 2 * bodyMax }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        bytes = 0
        context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytes
        guard bytes <= bytesMax else {
            context.fireErrorCaught(CalloutError.tooLong)
            return context.close(promise: nil)
        }
        context.fireChannelRead(data)
    }
}
