import Foundation
import MobileSync
import NIOCore
import NIOHTTP1
import NIOPosix
import OfflineResources
import Synchronization

/// A backend of REST resources with entity tags. It serves `GET` with `If-None-Match`, `PUT` with `If-Match`, `GET
/// /all/…` for a collection whose items have places and tags, and, when switched on, `POST /batch` for many edits.
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

    private struct Answer {
        let status: UInt
        var tag: String?
        var body = ""
        var headers: [String: String] = [:]
    }

    /// A request with many edits.
    private struct Batch: Decodable {
        struct Edit: Decodable {
            let id: String
            let method: String
            let uri: String
            let ifMatch: String?
            let body: JSONValue?
        }

        let edits: [Edit]
    }

    /// The result of one edit of a batch.
    private struct Outcome: Encodable {
        let id: String
        let status: UInt
        let etag: String?
    }

    private struct State {
        var entries: [String: Entry] = [:]
        var asked: [Asked] = []
        var lastVersion = 0
        /// Header fields of every response, by path.
        var headers: [String: [String: String]] = [:]
        var acceptsBatches = false
    }

    private let state = Mutex(State())
    private let channels = Mutex<[any Channel]>([])

    /// Changes a resource. Returns its new tag.
    @discardableResult
    func set(_ path: String, _ body: String) -> String { state.withLock { Self.set(path, body, in: &$0) } }

    /// Adds these fields to every response to this path.
    func setHeaders(_ path: String, _ headers: [String: String]) { state.withLock { $0.headers[path] = headers } }

    /// Announces and accepts batches of edits from now on.
    func acceptBatches() { state.withLock { $0.acceptsBatches = true } }

    /// A resource's body; nil: unknown resource.
    func body(_ path: String) -> String? { state.withLock { $0.entries[path]?.body } }

    /// A resource's tag; nil: unknown resource.
    func tag(_ path: String) -> String? { state.withLock { $0.entries[path]?.tag } }

    /// The number of versions of all resources so far.
    var versions: Int { state.withLock { $0.lastVersion } }

    /// Removes and returns the requests since the last call, in order.
    func drainRequests() -> [Asked] {
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

    private func answer(_ head: HTTPRequestHead, _ body: String) -> Answer {
        state.withLock { state in
            var answer = Self.answer(head, body, in: &state)
            state.asked.append(Asked(method: head.method.rawValue, path: head.uri, status: answer.status))
            answer.headers = state.headers[head.uri] ?? [:]
            if state.acceptsBatches { answer.headers["MSS-Sync-Batch"] = "/batch" }
            return answer
        }
    }

    private static func answer(_ head: HTTPRequestHead, _ body: String, in state: inout State) -> Answer {
        switch head.method {
        case .GET where head.uri.hasPrefix("/all/"):
            let items = state.entries.filter { $0.key.hasPrefix("/" + head.uri.dropFirst(5) + "/") }
                .sorted { $0.key < $1.key }
            let uris = items.map { "\"\($0.key)\"" }.joined(separator: ",")
            let tags = items.map { "\"\\\"v\($0.value.version)\\\"\"" }.joined(separator: ",")
            let bodies = items.map(\.value.body).joined(separator: ",")
            return Answer(status: 200, body: "{\"items\":[\(bodies)],\"uris\":[\(uris)],\"etags\":[\(tags)]}")
        case .GET:
            guard let entry = state.entries[head.uri] else { return Answer(status: 404) }
            return head.headers.first(name: "If-None-Match") == entry.tag
                ? Answer(status: 304, tag: entry.tag) : Answer(status: 200, tag: entry.tag, body: entry.body)
        case .PUT: return put(head.uri, body, ifMatch: head.headers.first(name: "If-Match"), in: &state)
        case .POST where head.uri == "/batch" && state.acceptsBatches: return batch(body, in: &state)
        default: return Answer(status: 405)
        }
    }

    private static func put(
        _ path: String, _ body: String, ifMatch condition: String?, in state: inout State
    ) -> Answer {
        let entry = state.entries[path]
        guard condition == nil || (entry != nil && (condition == "*" || condition == entry?.tag)) else {
            return Answer(status: 412)
        }
        return Answer(status: entry == nil ? 201 : 204, tag: set(path, body, in: &state))
    }

    private static func batch(_ body: String, in state: inout State) -> Answer {
        guard let batch = try? JSONDecoder().decode(Batch.self, from: Data(body.utf8)) else {
            return Answer(status: 400)
        }
        var results: [Outcome] = []
        for edit in batch.edits {
            let answer: Answer
            if edit.method == "PUT", let json = try? edit.body?.bytes() {
                answer = put(edit.uri, String(decoding: json, as: UTF8.self), ifMatch: edit.ifMatch, in: &state)
            } else {
                answer = Answer(status: 405)
            }
            results.append(Outcome(id: edit.id, status: answer.status, etag: answer.tag))
        }
        guard let json = try? JSONEncoder().encode(["results": results]) else { return Answer(status: 500) }
        return Answer(status: 200, body: String(decoding: json, as: UTF8.self))
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
                for (name, value) in answer.headers { headers.add(name: name, value: value) }
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
