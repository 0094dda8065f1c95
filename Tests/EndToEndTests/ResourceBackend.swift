import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization

/// A backend of REST resources with entity tags: `GET` with `If-None-Match`, `PUT` with `If-Match`, and `GET /all/…`, a
/// collection whose items come with their places and tags.
final class ResourceBackend: Sendable {
    /// One request.
    struct Asked: Sendable, Hashable {
        let method: String
        let path: String
        let status: UInt
    }

    private struct Entry {
        var body: String
        var version: Int
        var tag: String { "\"v\(version)\"" }
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var asked: [Asked] = []
        var lastVersion = 0
    }

    private let state = Mutex(State())
    private let channels = Mutex<[any Channel]>([])

    /// Changes a resource, and gives its tag.
    @discardableResult
    func set(_ path: String, _ body: String) -> String { state.withLock { Self.set(path, body, in: &$0) } }

    /// A resource's body; nil: there is none.
    func body(_ path: String) -> String? { state.withLock { $0.entries[path]?.body } }

    /// What was asked since the last time, in order.
    func takeAsked() -> [Asked] {
        state.withLock { state in
            defer { state.asked = [] }
            return state.asked
        }
    }

    /// Listens on a free port while the body runs.
    func serving<Value>(_ body: (_ port: Int) async throws -> Value) async throws -> Value {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                self.channels.withLock { $0.append(channel) }
                return channel.pipeline.configureHTTPServerPipeline().flatMapThrowing {
                    try channel.pipeline.syncOperations.addHandler(Answering(backend: self))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        channels.withLock { $0.append(channel) }
        do {
            let value = try await body(channel.localAddress?.port ?? 0)
            await stop()
            return value
        } catch {
            await stop()
            throw error
        }
    }

    private func stop() async {
        for channel in channels.withLock({ $0 }) { try? await channel.close() }
    }

    private static func set(_ path: String, _ body: String, in state: inout State) -> String {
        state.lastVersion += 1
        let entry = Entry(body: body, version: state.lastVersion)
        state.entries[path] = entry
        return entry.tag
    }

    private func answer(_ head: HTTPRequestHead, _ body: String) -> (status: UInt, tag: String?, body: String) {
        state.withLock { state in
            let answer = Self.answer(head, body, in: &state)
            state.asked.append(Asked(method: head.method.rawValue, path: head.uri, status: answer.status))
            return answer
        }
    }

    private static func answer(
        _ head: HTTPRequestHead, _ body: String, in state: inout State
    ) -> (status: UInt, tag: String?, body: String) {
        let entry = state.entries[head.uri]
        switch head.method {
        case .GET where head.uri.hasPrefix("/all/"):
            let items = state.entries.filter { $0.key.hasPrefix("/" + head.uri.dropFirst(5) + "/") }
                .sorted { $0.key < $1.key }
            let uris = items.map { "\"\($0.key)\"" }.joined(separator: ",")
            let tags = items.map { "\"\\\"v\($0.value.version)\\\"\"" }.joined(separator: ",")
            let bodies = items.map(\.value.body).joined(separator: ",")
            return (200, nil, "{\"items\":[\(bodies)],\"uris\":[\(uris)],\"etags\":[\(tags)]}")
        case .GET:
            guard let entry else { return (404, nil, "") }
            return head.headers.first(name: "If-None-Match") == entry.tag
                ? (304, entry.tag, "") : (200, entry.tag, entry.body)
        case .PUT:
            let condition = head.headers.first(name: "If-Match")
            guard condition == nil || (entry != nil && (condition == "*" || condition == entry?.tag)) else {
                return (412, nil, "")
            }
            return (entry == nil ? 201 : 204, set(head.uri, body, in: &state), "")
        default: return (405, nil, "")
        }
    }

    private final class Answering: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let backend: ResourceBackend
        private var head: HTTPRequestHead?
        private var body = ""

        init(backend: ResourceBackend) { self.backend = backend }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): (self.head, body) = (head, "")
            case .body(let part): body += String(buffer: part)
            case .end:
                guard let head else { return }
                let answer = backend.answer(head, body)
                var headers = HTTPHeaders([("Content-Type", "application/json")])
                if let tag = answer.tag { headers.add(name: "ETag", value: tag) }
                if ![204, 304].contains(answer.status) {
                    headers.add(name: "Content-Length", value: "\(answer.body.utf8.count)")
                }
                let response = HTTPResponseHead(
                    version: .http1_1, status: .init(statusCode: Int(answer.status)), headers: headers)
                context.write(wrapOutboundOut(.head(response)), promise: nil)
                context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }
}
