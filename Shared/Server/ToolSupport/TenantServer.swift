package import Foundation
package import NIOCore
import NIOHTTP1
import NIOPosix

/// A simulated tenant's endpoint for device operations.
package struct TenantServer: Sendable {
    /// Decides the reaction to a call.
    package typealias Answer = @Sendable (TenantQuestion) -> TenantReply

    private let listener: any Channel
    /// Port on the loopback address.
    package let port: Int

    /// Listens on the loopback address.
    ///
    /// - Parameters:
    /// - port: 0 for a free port.
    /// - group: the threads that answer.
    package static func start(
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

    /// Stops listening. Open connections end with the process.
    package func stop() async { try? await listener.close() }

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

/// A call of the tenant with a device operation, as far as runs read it (deploy/manual/DeviceOperations.md).
package struct TenantQuestion: Sendable {
    private struct Body: Decodable {
        let operationId: String
        let component: String
        let entityKey: String
        let deviceId: String
    }

    package let operationID: String
    package let component: String
    package let entityKey: String
    package let deviceID: String
    /// The instance of the Idempotency-Key.
    package let instance: String

    /// Returns nil if the call is not valid.
    package init?(idempotencyKey: String?, body: Data) {
        guard let instance = idempotencyKey?.split(separator: "/").first,
            let body = try? JSONDecoder().decode(Body.self, from: body)
        else { return nil }
        operationID = body.operationId
        component = body.component
        entityKey = body.entityKey
        deviceID = body.deviceId
        self.instance = String(instance)
    }
}

/// The reaction of a simulated tenant to a call.
package struct TenantReply: Sendable {
    package var status = 200
    package var body = "{}"
    /// Value of `Retry-After` in seconds. The value is nil for none.
    package var retryAfter: Int?
    /// Time until the response.
    package var delay = TimeAmount.zero
    /// Whether the connection ends instead of a response.
    package var isLost = false

    package init(
        status: Int = 200, body: String = "{}", retryAfter: Int? = nil, delay: TimeAmount = .zero, isLost: Bool = false
    ) {
        (self.status, self.body, self.retryAfter, self.delay, self.isLost) = (status, body, retryAfter, delay, isLost)
    }
}
