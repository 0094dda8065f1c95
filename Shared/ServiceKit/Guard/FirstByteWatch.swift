import NIOCore

/// Tells the guard of bytes before they are decoded, and of the end of the process.
final class FirstByteWatch: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let requestGuard: RequestGuard

    init(_ requestGuard: RequestGuard) { self.requestGuard = requestGuard }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        requestGuard.bytesArrived(Self.unwrapInboundIn(data))
        context.fireChannelRead(data)
    }

    /// Reads once ahead of the answer. NIO's pipeline handler reads nothing before it, for which the socket would be
    /// taken from the selector and put back with every request. What comes that early waits in the pipeline handler.
    func channelReadComplete(context: ChannelHandlerContext) {
        context.fireChannelReadComplete()
        if requestGuard.takeReadAhead(), context.channel.isWritable { context.read() }
    }

    /// NIO's pipeline handler would close at once between two requests, and so under a call that is on its way.
    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event is ChannelShouldQuiesceEvent else { return context.fireUserInboundEventTriggered(event) }
        requestGuard.drain()
    }
}
