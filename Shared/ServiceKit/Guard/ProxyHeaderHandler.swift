package import NIOCore

/// Takes the PROXY protocol header from the beginning of a balancer's connection, tells where it comes from, and goes;
/// what follows the header is passed on. A connection that begins otherwise, or is not admitted, is closed.
package final class ProxyHeaderHandler: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    private let admit: (SourceAddress?) -> Bool
    private var held = ByteBuffer()

    /// - Parameter admit: told the source, nil where the balancer speaks for itself; false: the connection is closed.
    package init(admit: @escaping (SourceAddress?) -> Bool) { self.admit = admit }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = Self.unwrapInboundIn(data)
        held.writeBuffer(&bytes)
        switch ProxyHeader.read(held.readableBytesView) {
        case .incomplete: return
        case .malformed: context.close(promise: nil)
        case .header(let header):
            guard admit(header.source) else { return context.close(promise: nil) }
            held.moveReaderIndex(forwardBy: header.length)
            if held.readableBytes > 0 { context.fireChannelRead(Self.wrapInboundOut(held)) }
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
        }
    }
}
