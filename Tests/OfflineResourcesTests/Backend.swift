import Foundation
import Hummingbird
import Logging
import MobileSync
import NIOCore
import Synchronization
import TestSupport

@testable import OfflineResources

/// A backend with resources: entity tags, `If-Match`, `Idempotency-Key`, pages and batches. Tests change its behaviour
/// and read its requests.
final class Backend: Sendable {
    struct Entry: Sendable {
        var body: String
        var version: Int
        var tag: String { "\"v\(version)\"" }
    }

    struct Asked: Sendable, Hashable {
        let method: String
        let uri: String
        let ifMatch: String?
        let ifNoneMatch: String?
        let key: String?
        let authorization: String?
        /// The field X-Trace, which only tests send.
        let trace: String?
        let range: String?
        let uploadOffset: String?
        let body: String
        /// Bytes of heads and bodies, in both directions.
        var bytes: Int
    }

    /// A resumable upload, and its bytes so far.
    struct Upload: Sendable {
        let target: String
        var body = ""
        var isComplete = false
    }

    struct State: Sendable {
        var entries: [String: Entry] = [:]
        var asked: [Asked] = []
        /// Responses for the next requests with this method, in place of its own.
        var refusals: [(method: String, status: HTTPResponse.Status)] = []
        /// Header fields of every response.
        var headers: [String: String] = [:]
        /// Redirections, by path.
        var redirects: [String: String] = [:]
        /// By path, the place at which a `PUT` creates the resource.
        var places: [String: String] = [:]
        var known: [String: (status: Int, tag: String?, location: String?)] = [:]
        var honoursKeys = true
        var takesBatches = false
        /// The number of results of a batch; further results are left out.
        var mostResults = Int.max
        /// Whether resumable uploads are accepted.
        var resumesUploads = false
        /// The resumable uploads, by URI.
        var uploads: [String: Upload] = [:]
        /// Whether a GET can ask for a part.
        var honoursRanges = true
        /// Whether a collection is `[ … ]` in place of `items`, `uris` and `etags`.
        var isPlainList = false
        var lastVersion = 0
        var lastID = 100
    }

    let state = Mutex(State())

    /// Changes the behaviour.
    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    func set(_ path: String, _ body: String) {
        state.withLock { state in
            state.lastVersion += 1
            state.entries[path] = Entry(body: body, version: state.lastVersion)
        }
    }

    func remove(_ path: String) { state.withLock { _ = $0.entries.removeValue(forKey: path) } }
    func body(_ path: String) -> String? { state.withLock { $0.entries[path]?.body } }
    func tag(_ path: String) -> String? { state.withLock { $0.entries[path]?.tag } }
    func refuse(_ method: String, _ status: Int) {
        state.withLock { $0.refusals.append((method, .init(code: status))) }
    }
    /// Removes and returns the requests so far.
    func drainRequests() -> [Asked] {
        state.withLock { state in
            defer { state.asked = [] }
            return state.asked
        }
    }

    // MARK: Serving

    /// Serves on a free port while the body runs.
    func serve(_ body: @Sendable @escaping (_ url: String) async throws -> Void) async throws {
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let responder = CallbackResponder(callback: { (request: Request, _: BasicRequestContext) in
            let data = try await request.body.collect(upTo: 10_000_000)
            return self.answer(request, String(buffer: data))
        })
        let application = Application(
            responder: responder, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { channel in listening.yield(channel.localAddress?.port ?? 0) },
            logger: Logger(label: "backend") { _ in SwiftLogNoOpLogHandler() })
        try await whileRunning(application) {
            var iterator = ports.makeAsyncIterator()
            guard let port = await iterator.next() else { throw Unexpected("the backend has no port") }
            try await body("http://127.0.0.1:\(port)/api")
        }
    }

    private func answer(_ request: Request, _ body: String) -> Response {
        func field(_ name: String) -> String? { HTTPFields.Element.Name(name).flatMap { request.headers[$0] } }
        let whole = request.uri.description
        let uri = whole.hasPrefix("/api") ? String(whole.dropFirst(4)) : whole
        let (ifMatch, key) = (field("If-Match"), field("Idempotency-Key"))
        var response = state.withLock { state -> Response in
            if let target = state.redirects[uri] {
                return Self.response(.found, ["Location": target])
            }
            if let index = state.refusals.firstIndex(where: { $0.method == request.method.rawValue }) {
                return Self.response(state.refusals.remove(at: index).status, [:], "no")
            }
            switch request.method {
            case .get:
                let part = state.honoursRanges && field("If-Range") == state.entries[uri]?.tag ? field("Range") : nil
                return part.flatMap { Self.part(uri, $0, in: state) }
                    ?? Self.get(uri, field("If-None-Match"), in: state)
            case .head: return Self.offset(of: uri, in: state)
            case _ where state.uploads[uri] != nil:
                let completes = field("Upload-Complete") == "?1"
                return Self.append(body, at: field("Upload-Offset"), to: uri, completes: completes, in: &state)
            case .put where state.resumesUploads && field("Upload-Complete") == "?0":
                guard ifMatch == nil || ifMatch == state.entries[uri]?.tag else {
                    return Self.response(.init(code: 412), [:])
                }
                state.lastID += 1
                state.uploads["/uploads/\(state.lastID)"] = Upload(target: uri)
                return Self.response(.created, ["Location": "/api/uploads/\(state.lastID)"])
            case .post where uri == "/batch" && state.takesBatches: return Self.batch(body, in: &state)
            default:
                let result = Self.change(request.method.rawValue, uri, ifMatch: ifMatch, key: key, body, in: &state)
                var headers: [String: String] = [:]
                headers["ETag"] = result.tag
                headers["Location"] = result.location.map { "/api" + $0 }
                return Self.response(.init(code: result.status), headers)
            }
        }
        let extra = state.withLock { $0.headers }
        for (name, value) in extra { if let name = HTTPFields.Element.Name(name) { response.headers[name] = value } }
        let heads = [request.headers, response.headers].flatMap { $0 }
            .reduce(whole.utf8.count + 40) { $0 + $1.name.rawName.utf8.count + $1.value.utf8.count + 4 }
        let asked = Asked(
            method: request.method.rawValue, uri: uri, ifMatch: ifMatch, ifNoneMatch: field("If-None-Match"),
            key: key, authorization: field("Authorization"), trace: field("X-Trace"), range: field("Range"),
            uploadOffset: field("Upload-Offset"), body: body,
            bytes: heads + body.utf8.count + (response.body.contentLength ?? 0))
        state.withLock { $0.asked.append(asked) }
        return response
    }

    private static func get(_ uri: String, _ tag: String?, in state: State) -> Response {
        let parts = uri.split(separator: "?", maxSplits: 1)
        let path = String(parts[0])
        if let entry = state.entries[path] {
            if tag == entry.tag { return response(.notModified, ["ETag": entry.tag]) }
            return response(.ok, ["ETag": entry.tag, "Content-Type": "application/json"], entry.body)
        }
        let items = state.entries.filter { key, _ in
            key.hasPrefix(path + "/") && !key.dropFirst(path.count + 1).contains("/")
        }.sorted { $0.key < $1.key }
        guard !items.isEmpty || path == "/empty" else { return response(.notFound, [:]) }
        var page = items[...]
        var parameters: [Substring: Substring] = [:]
        for parameter in (parts.count > 1 ? parts[1] : "").split(separator: "&") {
            let sides = parameter.split(separator: "=")
            parameters[sides[0]] = sides[1]
        }
        if parameters["orderBy"]?.hasSuffix(":desc") == true { page = ArraySlice(page.reversed()) }
        page = page.dropFirst(parameters["offset"].flatMap { Int($0) } ?? 0)
        page = page.prefix(parameters["limit"].flatMap { Int($0) } ?? .max)
        let list = "[" + page.map(\.value.body).joined(separator: ",") + "]"
        let whole = "\"c\(page.map(\.value.version).map(String.init).joined(separator: "."))\""
        if tag == whole { return response(.notModified, ["ETag": whole]) }
        if state.isPlainList { return response(.ok, ["ETag": whole], list) }
        let uris = page.map { "\"/api\($0.key)\"" }.joined(separator: ",")
        let tags = page.map { "\"\\\"v\($0.value.version)\\\"\"" }.joined(separator: ",")
        return response(.ok, ["ETag": whole], "{\"items\":\(list),\"uris\":[\(uris)],\"etags\":[\(tags)]}")
    }

    /// The part of a resource from an offset to its end.
    private static func part(_ path: String, _ range: String, in state: State) -> Response? {
        guard let entry = state.entries[path], let start = Int(range.dropFirst(6).dropLast()) else { return nil }
        let bytes = Array(entry.body.utf8)
        guard start < bytes.count else { return response(.rangeNotSatisfiable, [:]) }
        return response(
            .partialContent,
            ["ETag": entry.tag, "Content-Range": "bytes \(start)-\(bytes.count - 1)/\(bytes.count)"],
            String(decoding: bytes[start...], as: UTF8.self))
    }

    /// How much of a resumable upload has arrived.
    private static func offset(of uri: String, in state: State) -> Response {
        guard let upload = state.uploads[uri] else { return response(.notFound, [:]) }
        return response(
            .noContent,
            ["Upload-Offset": "\(upload.body.utf8.count)", "Upload-Complete": upload.isComplete ? "?1" : "?0"])
    }

    /// Adds a part to a resumable upload.
    private static func append(
        _ body: String, at offset: String?, to uri: String, completes: Bool, in state: inout State
    ) -> Response {
        guard var upload = state.uploads[uri], !upload.isComplete else { return response(.notFound, [:]) }
        guard offset == "\(upload.body.utf8.count)" else { return response(.conflict, [:]) }
        upload.body += body
        upload.isComplete = completes
        state.uploads[uri] = upload
        guard completes else { return response(.noContent, [:]) }
        state.lastVersion += 1
        let entry = Entry(body: upload.body, version: state.lastVersion)
        state.entries[upload.target] = entry
        return response(.ok, ["ETag": entry.tag])
    }

    private static func change(
        _ method: String, _ path: String, ifMatch: String?, key: String?, _ body: String, in state: inout State
    ) -> (status: Int, tag: String?, location: String?) {
        if state.honoursKeys, let key, let known = state.known[key] { return known }
        var result: (status: Int, tag: String?, location: String?)
        let present = state.entries[path]
        let matches = ifMatch == nil || (present != nil && (ifMatch == "*" || ifMatch == present?.tag))
        switch method {
        case _ where method != "POST" && !matches: result = (412, nil, nil)
        case "POST":
            state.lastID += 1
            state.lastVersion += 1
            let place = "\(path)/\(state.lastID)"
            let entry = Entry(body: body, version: state.lastVersion)
            state.entries[place] = entry
            result = (201, entry.tag, place)
        case "PUT":
            state.lastVersion += 1
            let entry = Entry(body: body, version: state.lastVersion)
            let place = state.places[path]
            state.entries[place ?? path] = entry
            result = (present == nil || place != nil ? 201 : 204, entry.tag, place)
        case "PATCH":
            guard let present, let merged = EditMerge.patched([UInt8](present.body.utf8), with: [UInt8](body.utf8))
            else { return (404, nil, nil) }
            state.lastVersion += 1
            let entry = Entry(body: String(decoding: merged, as: UTF8.self), version: state.lastVersion)
            state.entries[path] = entry
            result = (204, entry.tag, nil)
        case "DELETE":
            result = (state.entries.removeValue(forKey: path) == nil ? 404 : 204, nil, nil)
        default: result = (405, nil, nil)
        }
        if let key, result.status < 300 { state.known[key] = result }
        return result
    }

    private static func batch(_ body: String, in state: inout State) -> Response {
        guard case .array(let edits)? = JSONValue.parse([UInt8](body.utf8))?["edits"] else {
            return response(.badRequest, [:])
        }
        var results: [String] = []
        for edit in edits {
            guard case .text(let id)? = edit["id"], case .text(let method)? = edit["method"],
                case .text(let uri)? = edit["uri"]
            else { return response(.badRequest, [:]) }
            var ifMatch: String?
            if case .text(let text)? = edit["ifMatch"] { ifMatch = text }
            let json = (try? edit["body"]?.json()).map { String(decoding: $0, as: UTF8.self) } ?? ""
            let result = change(method, uri, ifMatch: ifMatch, key: id, json, in: &state)
            var members: [String: JSONValue] = ["id": .text(id), "status": .integer(Int64(result.status))]
            members["etag"] = result.tag.map(JSONValue.text)
            members["location"] = result.location.map { .text("/api" + $0) }
            if results.count < state.mostResults, let text = try? JSONValue.object(members).json() {
                results.append(String(decoding: text, as: UTF8.self))
            }
        }
        return response(.ok, [:], "{\"results\":[\(results.joined(separator: ","))]}")
    }

    private static func response(
        _ status: HTTPResponse.Status, _ fields: [String: String], _ body: String = ""
    ) -> Response {
        var headers = HTTPFields()
        for (name, value) in fields { if let name = HTTPFields.Element.Name(name) { headers[name] = value } }
        return Response(status: status, headers: headers, body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }
}
