import Foundation
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel
import Testing

@testable import IngestAPI

// One exchange at a time: each blocks a thread of the pool that the server answers on.
@Suite("Ingest: HTTP", .serialized)
struct IngestHTTPTests {
    private static let json = #"{"bizType":"orders","linkToken":"u","thirdMsgId":"t","payload":"p"}"#

    private func head(
        _ method: HTTPRequest.Method = .post, _ path: String = "/webapi/sync/single?instanceId=w_app",
        _ headers: HTTPFields = [.contentType: "application/json", .contentLength: "2"]
    ) -> HTTPRequest {
        HTTPRequest(method: method, scheme: "http", authority: "test", path: path, headerFields: headers)
    }

    private func refusal(_ head: HTTPRequest) -> APIAnswer? {
        do throws(HeadRefusal) {
            _ = try RequestRules.call(of: head)
            return nil
        } catch {
            return error.answer
        }
    }

    @Test("both calls are found by their path, whatever the query")
    func scopes() throws {
        #expect(try RequestRules.call(of: head()) == .push(.single))
        #expect(try RequestRules.call(of: head(.post, "/webapi/sync/global?x=/y")) == .push(.global))
    }

    @Test("a head that cannot be served has its status and closes the connection")
    func statuses() {
        let long = "/webapi/sync/single?instanceId=" + String(repeating: "a", count: 8_192)
        let cases: [(HTTPRequest, UInt)] = [
            (head(.post, "/"), 404), (head(.post, "/webapi/sync/single/"), 404), (head(.get, "/x"), 404),
            (head(.get), 405), (head(.put), 405), (head(.post, long), 414),
            (head(.post, "/webapi/sync/single", [.contentLength: "2"]), 415),
            (head(.post, "/webapi/sync/single", [.contentType: "text/plain", .contentLength: "2"]), 415),
            (
                head(
                    .post, "/webapi/sync/single", [.contentType: "application/json; charset=gbk", .contentLength: "2"]),
                415
            ),
            (head(.post, "/webapi/sync/single", [.contentType: "application/json"]), 411),
            (head(.post, "/webapi/sync/single", [.contentType: "application/json", .contentLength: "65537"]), 413),
        ]
        for (head, status) in cases {
            let answer = refusal(head)
            #expect(answer?.status.code == status && answer?.closesConnection == true, "\(head)")
        }
        #expect(refusal(head(.get))?.allow == "POST")
    }

    @Test("Content-Encoding is accepted only where it is no compression")
    func encodings() {
        func status(_ encoding: String) -> UInt? {
            refusal(
                head(
                    .post, "/webapi/sync/single",
                    [.contentType: "application/json", .contentLength: "65536", .contentEncoding: encoding]))?.status
                .code
        }
        for encoding in ["UTF-8", "utf-8", "identity", "Identity"] { #expect(status(encoding) == nil) }
        for encoding in ["gzip", "deflate", "br", "UTF-8, gzip", "utf8"] { #expect(status(encoding) == 415) }
    }

    @Test("Content-Type may name the charset in any spelling")
    func contentTypes() {
        for type in ["application/json;charset=UTF-8", "Application/JSON; charset=\"utf-8\"", "application/json"] {
            #expect(refusal(head(.post, "/webapi/sync/single", [.contentType: type, .contentLength: "2"])) == nil)
        }
    }

    @Test("instanceId is decoded, and absent when it is given twice or wrongly encoded")
    func instanceIDs() {
        func found(_ query: String) -> String? {
            RequestQuery(head(.post, "/webapi/sync/single" + query))["instanceId"]
        }
        #expect(found("?a=b&instanceId=w%5Fapp") == "w_app")
        #expect(found("?instanceId=") == "")
        for query in [
            "", "?", "?instanceid=a", "?instanceId=a&instanceId=a", "?instanceId=%zz", "?instanceId=%f",
            "?instanceId=%ff",
        ] {
            #expect(found(query) == nil, "\(query)")
        }
    }

    @Test("a dry run is asked for with true alone: what may be a mistake becomes no push")
    func dryRun() throws {
        func isDryRun(_ query: String) throws(PushRefusal) -> Bool {
            try RequestQuery(head(.post, "/webapi/sync/single?instanceId=a\(query)")).isDryRun
        }
        #expect(try isDryRun("") == false)
        #expect(try isDryRun("&dryRun=false") == false)
        #expect(try isDryRun("&dryRun=true") == true)
        for query in ["&dryRun=", "&dryRun", "&dryRun=1", "&dryRun=TRUE", "&dryRun=true&dryRun=true", "&dryRun=%"] {
            #expect(throws: PushRefusal.self, "\(query)") { try isDryRun(query) }
        }
    }

    @Test("H8: the description has every path with its method, every code and every state, and is served")
    func description() async throws {
        let data = Data(PackageResources.openapi_json)
        let document = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let calls = paths.mapValues { $0.keys.filter { ["get", "post", "put", "delete"].contains($0) } }
        for (path, methods) in calls {
            let call = try #require(APICall(path: path[...]), "\(path)")
            #expect(methods == [call.method.rawValue.lowercased()])
        }
        #expect(calls.count == 6)
        let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
        let enums = schemas.values.compactMap { $0["enum"] as? [String] }.map(Set.init)
        #expect(enums.contains(Set(ResultCode.allCases.map(\.rawValue))))
        #expect(enums.contains(Set(DeliveryState.allCases.map(\.code))))
        let sentences = String(decoding: data, as: UTF8.self)
        for state in DeliveryState.allCases { #expect(sentences.contains(state.sentence), "\(state)") }
        try await withServer(limits: ConnectionLimits()) { port in
            let request = "GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            let answer = try await exchange(port, request)
            #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains(#""openapi": "3.1."#))
        }
    }

    @Test("a served connection answers, keeps alive, and closes politely on what is broken, large or slow")
    func connection() async throws {
        var limits = ConnectionLimits()
        limits.head = .milliseconds(200)
        limits.body = .milliseconds(200)
        limits.linger = .milliseconds(200)
        try await withServer(limits: limits) { port in
            let post =
                "POST /webapi/sync/single?instanceId=w_app HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
            let good = post + "Content-Encoding: UTF-8\r\nContent-Length: \(Self.json.utf8.count)\r\n\r\n" + Self.json
            let twice = try await exchange(
                port, good + good.replacing("Host: t\r\n", with: "Host: t\r\nConnection: close\r\n"))
            #expect(twice.components(separatedBy: "\"msg\":\"SUCCESS\",\"oplogId\":7").count == 3)
            #expect(twice.lowercased().contains("x-request-id: "))

            let refused: [(String, String)] = [
                (post + "Content-Length: 70000\r\n\r\n" + String(repeating: "x", count: 70_000), "413 "),
                (post + "Transfer-Encoding: chunked\r\n\r\n10001\r\n" + String(repeating: "x", count: 65_537), "413 "),
                (post + "\r\n", "411 "), ("GET /webapi/sync/single HTTP/1.1\r\nHost: t\r\n\r\n", "405 "),
                (post + "X-A: " + String(repeating: "a", count: 20_000) + "\r\n\r\n", "431 "),
                (post + String(repeating: "a: b\r\n", count: 120) + "\r\n", "431 "),
                ("POST /" + String(repeating: "a", count: 40_000) + " HTTP/1.1\r\nHost: t\r\n\r\n", "414 "),
                (post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "400 "),
                (post + "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n", "400 "),
                (post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400 "),
                (post + "Host: u\r\nContent-Length: 2\r\n\r\n{}", "400 "), ("nonsense\r\n\r\n", "400 "),
                ("POST /web", "408 "), (post + "Content-Length: 20\r\n\r\n{", "408 "),
            ]
            for (request, status) in refused {
                let answer = try await exchange(port, request)
                #expect(answer.hasPrefix("HTTP/1.1 " + status), "\(request.prefix(120)) → \(answer.prefix(40))")
                #expect(answer.contains(#"{"success":false,"msg":"SYSTEM_ERROR","attempted":false"#))
                #expect(answer.components(separatedBy: "HTTP/1.1 ").count == 2, "one answer")
            }
        }
    }

    /// Serves on a free port while the body runs.
    private func withServer(
        limits: ConnectionLimits, _ body: @Sendable (Int) async throws -> Void
    ) async throws {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let responder = IngestResponder(
            intake: .stub(), operations: .stub(), health: HealthState(), metrics: IngestMetrics(), logger: logger)
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let server = IngestServer(
            host: "127.0.0.1", port: 0, responder: responder, limits: limits, onListening: { listening.yield($0) })
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            try await body(port)
            group.cancelAll()
        }
    }

    /// Sends the text and gives everything that comes back until the server closes, at most 5 s.
    @concurrent
    private func exchange(_ port: Int, _ text: String) async throws -> String {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 5, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(port).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let connected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        try #require(connected == 0)
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return String(decoding: answer, as: UTF8.self) }
            answer += buffer[..<count]
        }
    }
}
