import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A tenant that records which sessions it has ended, and when. Deliveries are compared with that record (I7).
///
/// An ended session stays ended. Some answers are late and some are errors, as with real tenants.
final class CanaryTenant: Sendable {
    private struct Question: Decodable {
        let instanceId: String
        let userId: String
        let sessionId: String
    }

    private let ended = Mutex<Set<String>>([])
    private let asked = Mutex(0)
    private let listener: Mutex<(any Channel)?> = Mutex(nil)

    /// The number of validation calls so far.
    var questions: Int { asked.withLock { $0 } }

    /// Ends a session. After the return, no answer calls the session valid.
    func end(_ session: String) { ended.withLock { _ = $0.insert(session) } }

    /// Listens on the loopback address.
    func start(port: Int) async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(Answering(tenant: self))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        listener.withLock { $0 = channel }
    }

    func stop() async throws { try await listener.withLock { $0 }?.close() }

    /// The response's status and body, and its delay in milliseconds.
    private func answer(to body: [UInt8]) -> (status: HTTPResponseStatus, body: String, delay: Int64) {
        let count = asked.withLock { asked in
            asked += 1
            return asked
        }
        guard let question = try? JSONDecoder().decode(Question.self, from: Data(body)) else {
            return (.badRequest, "{}", 0)
        }
        if count.isMultiple(of: 97) { return (.internalServerError, "{}", 0) }
        let isValid = !ended.withLock { $0.contains(question.sessionId) }
        let answer =
            #"{"resultCode":"OK","success":true,"result":{"sid":"\#(question.sessionId)","valid":\#(isValid)}}"#
        return (.ok, answer, count.isMultiple(of: 5) ? .random(in: 1...60) : 0)
    }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let tenant: CanaryTenant
        private var body: [UInt8] = []

        init(tenant: CanaryTenant) { self.tenant = tenant }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head: body = []
            case .body(let part): body += part.readableBytesView
            case .end:
                let (status, text, delay) = tenant.answer(to: body)
                let channel = context.channel
                context.eventLoop.scheduleTask(in: .milliseconds(delay)) {
                    let headers = HTTPHeaders([
                        ("Content-Type", "application/json"), ("Content-Length", "\(text.utf8.count)"),
                    ])
                    let head = HTTPResponseHead(version: .http1_1, status: status, headers: headers)
                    channel.write(HTTPServerResponsePart.head(head), promise: nil)
                    channel.write(HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: text))), promise: nil)
                    channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
                }
            }
        }
    }
}
