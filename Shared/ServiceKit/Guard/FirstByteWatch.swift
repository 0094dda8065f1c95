import NIOCore

/// Tells the guard of bytes before they are decoded.
final class FirstByteWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let requestGuard: RequestGuard

    init(_ requestGuard: RequestGuard) { self.requestGuard = requestGuard }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        requestGuard.bytesArrived(Self.unwrapInboundIn(data))
        context.fireChannelRead(data)
    }
}
