import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
import TestSupport

/// A tenant's backend that executes operations, honours idempotency keys, and records its work.
final class OperationTenant: Sendable {
    /// One call.
    struct Call: Sendable {
        let key: String
        let question: [String: String]
        let body: String
        let children: [String]
        /// The whole request as JSON.
        let json: [UInt8]
        let begun: ContinuousClock.Instant
    }

    /// The response to a call, and its delay.
    struct Answer: Sendable {
        var status = 200
        var body = "{}"
        var delay = Duration.zero
        var headers: [(String, String)] = []
    }

    private struct State {
        var calls: [Call] = []
        /// Idempotency keys in the order of their first execution, by entity.
        var done: [String: [String]] = [:]
        var keys: Set<String> = []
        /// Calls in flight, by entity. More than one at a time breaks the order.
        var running: [String: Int] = [:]
        var overlaps: [String] = []
    }

    private let state = Mutex(State())
    /// The listener, and the connections, which callers keep open for their next call.
    private let channels = Mutex<[any Channel]>([])
    private let answer: @Sendable (_ call: Call, _ number: Int) -> Answer

    /// - Parameter answer: returns the response to a call; the number counts the calls with the same key, from 1.
    init(_ answer: @escaping @Sendable (Call, Int) -> Answer = { _, _ in Answer() }) { self.answer = answer }

    /// All calls so far.
    var calls: [Call] { state.withLock { $0.calls } }

    /// The calls with this operation id.
    func calls(of id: String) -> [Call] { calls.filter { $0.question["operationId"] == id } }

    /// Ids of the operations that were executed on an entity, each once, in order.
    func done(to entity: String) -> [String] { state.withLock { $0.done[entity] ?? [] } }

    /// Entities with two calls in flight at once.
    var overlaps: [String] { state.withLock { $0.overlaps } }

    /// Listens while the body runs.
    func serving(_ port: Int, _ body: () async throws -> Void) async throws {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                self.channels.withLock { $0.append(channel) }
                return channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(Answering(tenant: self))
                }
            }
            .bind(host: "127.0.0.1", port: port).get()
        channels.withLock { $0.append(channel) }
        do {
            try await body()
        } catch {
            await stop()
            throw error
        }
        await stop()
    }

    /// Also closes the connections, so that a later call cannot reach this tenant.
    private func stop() async {
        for channel in channels.withLock({ $0 }) { try? await channel.close() }
    }

    private func begin(_ headers: HTTPHeaders, _ bytes: [UInt8]) -> (Answer, entity: String) {
        guard let json = try? JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any] else {
            return (Answer(status: 400), "")
        }
        let texts = json.compactMapValues { $0 as? String }
        let body = json["body"].flatMap { try? JSONSerialization.data(withJSONObject: $0, options: .fragmentsAllowed) }
        let children = (json["children"] as? [[String: Any]] ?? []).compactMap { $0["operationId"] as? String }
        let call = Call(
            key: headers.first(name: "Idempotency-Key") ?? "", question: texts,
            body: body.map { String(decoding: $0, as: UTF8.self) } ?? texts["bodyBase64"] ?? "", children: children,
            json: bytes,
            begun: .now)
        let entity = "\(texts["component"] ?? "")/\(texts["entityKey"] ?? "")"
        let number = state.withLock { state in
            state.calls.append(call)
            state.running[entity, default: 0] += 1
            if state.running[entity, default: 0] > 1 { state.overlaps.append(entity) }
            return state.calls.count { $0.key == call.key }
        }
        let answer = answer(call, number)
        if (200..<300).contains(answer.status) {
            state.withLock { state in
                guard state.keys.insert(call.key).inserted else { return }
                state.done[entity, default: []].append(texts["operationId"] ?? "")
            }
        }
        return (answer, entity)
    }

    private func end(_ entity: String) { state.withLock { $0.running[entity, default: 1] -= 1 } }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let tenant: OperationTenant
        private var headers = HTTPHeaders()
        private var body: [UInt8] = []

        init(tenant: OperationTenant) { self.tenant = tenant }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): (headers, body) = (head.headers, [])
            case .body(let part): body += part.readableBytesView
            case .end:
                let (answer, entity) = tenant.begin(headers, body)
                let (channel, tenant) = (context.channel, tenant)
                let delay =
                    answer.delay.components.seconds * 1_000 + answer.delay.components.attoseconds
                    / 1_000_000_000_000_000
                context.eventLoop.scheduleTask(in: .milliseconds(delay)) {
                    tenant.end(entity)
                    var headers = HTTPHeaders([
                        ("Content-Type", "application/json"), ("Content-Length", "\(answer.body.utf8.count)"),
                    ])
                    headers.add(contentsOf: answer.headers)
                    let head = HTTPResponseHead(
                        version: .http1_1, status: .init(statusCode: answer.status), headers: headers)
                    channel.write(HTTPServerResponsePart.head(head), promise: nil)
                    channel.write(
                        HTTPServerResponsePart.body(.byteBuffer(ByteBuffer(string: answer.body))), promise: nil)
                    channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
                }
            }
        }
    }
}
