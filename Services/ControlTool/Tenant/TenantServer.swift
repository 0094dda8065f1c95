import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix

/// A tenant's endpoint for operations, played by a run.
struct TenantServer: Sendable {
    /// Says what becomes of a call.
    typealias Answer = @Sendable (TenantQuestion) -> TenantReply

    private let listener: any Channel
    /// On the loopback address.
    let port: Int

    /// Listens on the loopback address.
    ///
    /// - Parameters:
    ///   - port: 0: any.
    ///   - group: whose threads answer.
    static func start(
        port: Int = 0, on group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton,
        _ answer: @escaping Answer
    ) async throws -> TenantServer {
        let listener = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1_024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Answering(answer))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        return TenantServer(listener: listener, port: listener.localAddress?.port ?? port)
    }

    /// Takes no more connections; those that are there end with the process.
    func stop() async { try? await listener.close() }

    /// One connection.
    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let answer: Answer
        private var headers = HTTPHeaders()
        private var body = Data()

        init(_ answer: @escaping Answer) { self.answer = answer }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): (headers, body) = (head.headers, Data())
            case .body(let part): body += part.readableBytesView
            case .end:
                let question = TenantQuestion(idempotencyKey: headers.first(name: "Idempotency-Key"), body: body)
                reply(question.map(answer) ?? TenantReply(status: 400), context)
            }
        }

        private func reply(_ reply: TenantReply, _ context: ChannelHandlerContext) {
            guard reply.delay > .zero else { return write(reply, context) }
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: reply.delay) {
                let (handler, context) = bound.value
                handler.write(reply, context)
            }
        }

        private func write(_ reply: TenantReply, _ context: ChannelHandlerContext) {
            guard !reply.isLost else { return context.close(promise: nil) }
            var headers = HTTPHeaders([
                ("Content-Type", "application/json"), ("Content-Length", "\(reply.body.utf8.count)"),
            ])
            if let seconds = reply.retryAfter { headers.add(name: "Retry-After", value: "\(seconds)") }
            let head = HTTPResponseHead(
                version: .http1_1, status: HTTPResponseStatus(statusCode: reply.status), headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: reply.body)))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }
}
