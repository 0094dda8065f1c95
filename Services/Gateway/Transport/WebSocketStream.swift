import NIOCore
import NIOWebSocket

/// Converts between WebSocket frames on the network and a stream of bytes for the device's handler.
///
/// The boundaries of messages have no meaning (DeviceProtocol.md, Transport), so the bytes of each WebSocket frame are
/// passed on at once.
final class WebSocketStream: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = WebSocketFrame

    /// Time for the peer to answer a close frame.
    private static let closingWait = TimeAmount.seconds(1)

    /// The current message has further frames.
    private var isInMessage = false
    /// The close frame was sent. Nothing follows it in either direction.
    private var isClosing = false
    private var alarm: Scheduled<Void>?
    /// The promise of the caller that closed the connection.
    private var closePromise: EventLoopPromise<Void>?

    func handlerRemoved(context: ChannelHandlerContext) {
        alarm?.cancel()
        closePromise?.succeed()
    }

    // MARK: From the device

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = Self.unwrapInboundIn(data)
        guard !isClosing else {
            if frame.opcode == .connectionClose { finish(context) }
            return
        }
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else { return end(.protocolError, context) }
        switch frame.opcode {
        case .binary where !isInMessage, .continuation where isInMessage:
            isInMessage = !frame.fin
            context.fireChannelRead(wrapInboundOut(frame.unmaskedData))
        case .text:
            end(.unacceptableData, context)
        case .ping:
            // A peer that does not read gets no pongs, which would only accumulate.
            if context.channel.isWritable { write(.pong, frame.unmaskedData, context) }
        case .pong:
            break
        case .connectionClose:
            end(Self.answer(to: frame.unmaskedData), context)
        default:
            end(.protocolError, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case is NIOWebSocketError where isClosing: finish(context)
        case NIOWebSocketError.invalidFrameLength: end(.messageTooLarge, context)
        case is NIOWebSocketError: end(.protocolError, context)
        default: context.fireErrorCaught(error)
        }
    }

    // MARK: To the device

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isClosing else {
            promise?.fail(ChannelError.outputClosed)
            return
        }
        let frame = WebSocketFrame(fin: true, opcode: .binary, data: Self.unwrapOutboundIn(data))
        context.write(wrapOutboundOut(frame), promise: promise)
    }

    /// Sends a close frame, and closes after the peer's answer.
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        guard mode == .all, !isClosing, context.channel.isActive else {
            context.close(mode: mode, promise: promise)
            return
        }
        closePromise = promise
        sendClose(.normalClosure, context)
    }

    /// Closes without waiting, because the peer sent a close frame or broke the protocol.
    private func end(_ code: WebSocketErrorCode, _ context: ChannelHandlerContext) {
        let sent = context.eventLoop.makePromise(of: Void.self)
        sent.futureResult.assumeIsolated().whenComplete { _ in self.finish(context) }
        sendClose(code, context, promise: sent)
    }

    private func sendClose(
        _ code: WebSocketErrorCode, _ context: ChannelHandlerContext, promise: EventLoopPromise<Void>? = nil
    ) {
        isClosing = true
        var data = context.channel.allocator.buffer(capacity: 2)
        data.write(webSocketErrorCode: code)
        write(.connectionClose, data, context, promise: promise)
        alarm = context.eventLoop.assumeIsolated().scheduleTask(in: Self.closingWait) { self.finish(context) }
    }

    private func finish(_ context: ChannelHandlerContext) {
        context.close(promise: closePromise)
        closePromise = nil
    }

    private func write(
        _ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext,
        promise: EventLoopPromise<Void>? = nil
    ) {
        context.writeAndFlush(wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: data)), promise: promise)
    }

    /// The code of the answer to a close frame: the peer's own if it is allowed in a frame (RFC 6455, 7.4).
    private static func answer(to close: ByteBuffer) -> WebSocketErrorCode {
        guard close.readableBytes > 0 else { return .normalClosure }
        guard let code = close.getInteger(at: close.readerIndex, as: UInt16.self) else { return .protocolError }
        switch code {
        case 1000...1003, 1007...1014, 3000...4999: return WebSocketErrorCode(codeNumber: Int(code))
        default: return .protocolError
        }
    }
}
