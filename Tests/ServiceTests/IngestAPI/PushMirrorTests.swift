import Foundation
import Hummingbird
import Logging
import NIOCore
import Synchronization
import TestSupport
import Testing

@testable import IngestAPI

@Suite("The mirror of pushes to another service") struct PushMirrorTests {
    /// The other service: the received requests and its answers.
    private final class Other: Sendable {
        let calls = Mutex<[(uri: String, body: String)]>([])

        /// Serves on a free port while the body runs.
        func serve(_ body: @Sendable (_ url: String) async throws -> Void) async throws {
            let router = Router()
            for scope in ["single", "global"] {
                router.post("/webapi/sync/\(scope)") { [self] request, _ in
                    let text = String(buffer: try await request.body.collect(upTo: 65_536))
                    calls.withLock { $0.append((request.uri.description, text)) }
                    let isRefused = text.contains("refused there")
                    return Response(
                        status: .ok, headers: [.contentType: "application/json"],
                        body: .init(
                            byteBuffer: ByteBuffer(
                                string: isRefused
                                    ? #"{"success":false,"msg":"BIZ_NOT_ONLINE"}"#
                                    : #"{"success":true,"msg":"NOT_ONLINE"}"#)))
                }
            }
            let (ports, listening) = AsyncStream.makeStream(of: Int.self)
            let application = Application(
                router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
                onServerRunning: { channel in listening.yield(channel.localAddress?.port ?? 0) },
                logger: Logger(label: "other") { _ in SwiftLogNoOpLogHandler() })
            try await whileRunning(application) {
                var iterator = ports.makeAsyncIterator()
                let port = try requireValue(await iterator.next(), "the other service's port")
                try await body("http://127.0.0.1:\(port)/")
            }
        }
    }

    private static func push(_ target: String, _ number: Int, payload: String = "p", more: String = "") -> String {
        let body = #"{"bizType":"orders","linkToken":"\#(target)","thirdMsgId":"\#(number)","payload":"\#(payload)"}"#
        return
            "POST /webapi/sync/single?instanceId=w_app\(more) HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n" + body
    }

    @Test("it gets each push once, in order for each target, without dry runs and unattempted pushes")
    func everyPush() async throws {
        let other = Other()
        try await other.serve { url in
            let mirror = PushMirror(url: url, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
            try await IngestServerFixture.serve(mirror: mirror) { port in
                var text = Self.push("u1", 0, more: "&dryRun=true")
                for number in 1...40 { text += Self.push("u\(number % 2)", number) }
                text += "POST /webapi/sync/single?instanceId=w_app HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
                let answers = try await IngestServerFixture.exchange(port, text)
                #expect(answers.count == 42)
                try await eventually("all are there", within: .seconds(20)) {
                    other.calls.withLock { $0.count } == 40
                }
            }
            let calls = other.calls.withLock { $0 }
            #expect(calls.allSatisfy { $0.uri == "/webapi/sync/single?instanceId=w_app" })
            for user in 0...1 {
                let mine = calls.map(\.body).filter { $0.contains("\"u\(user)\"") }
                let numbers = (1...40).filter { $0 % 2 == user }
                #expect(
                    mine
                        == numbers.map {
                            #"{"bizType":"orders","linkToken":"u\#(user)","thirdMsgId":"\#($0)","payload":"p"}"#
                        })
            }
        }
    }

    @Test("answers agree when both services stored the push, or refused it for the same reason") func agreement() {
        func answer(_ success: Bool, _ msg: String) -> PushMirror.Answer {
            PushMirror.Answer(success: success, msg: msg)
        }
        #expect(answer(true, "SUCCESS").agrees(with: answer(true, "DUPLICATED_BIZ_ID")))
        #expect(answer(false, "PAYLOAD_LONG").agrees(with: answer(false, "PAYLOAD_LONG")))
        #expect(!answer(false, "PAYLOAD_LONG").agrees(with: answer(false, "ARGS_IS_NULL")))
        #expect(!answer(true, "SUCCESS").agrees(with: answer(false, "SYSTEM_ERROR")))
    }

    @Test("a different answer is logged, and an unavailable service delays no push") func trouble() async throws {
        let lines = Mutex<[String]>([])
        struct Lines: LogHandler {
            let take: @Sendable (String) -> Void
            var metadata: Logger.Metadata = [:]
            var logLevel = Logger.Level.info
            subscript(metadataKey key: String) -> Logger.Metadata.Value? {
                get { metadata[key] }
                set { metadata[key] = newValue }
            }
            func log(event: LogEvent) {
                take("\(event.message) \(event.metadata?["there"] ?? "")")
            }
        }
        let logger = Logger(label: "test") { _ in Lines { line in lines.withLock { $0.append(line) } } }
        let other = Other()
        try await other.serve { url in
            try await IngestServerFixture.serve(mirror: PushMirror(url: url, logger: logger)) { port in
                _ = try await answers(port, Self.push("u", 1, payload: "refused there"))
                try await eventually("the difference is told", within: .seconds(20)) {
                    lines.withLock { $0 } == ["the mirror gave another answer BIZ_NOT_ONLINE"]
                }
            }
        }
        lines.withLock { $0 = [] }
        try await IngestServerFixture.serve(mirror: PushMirror(url: "http://127.0.0.1:1", logger: logger)) { port in
            #expect(try await answers(port, Self.push("u", 2)).first?.body.contains("\"success\":true") == true)
            try await eventually("the failure is told", within: .seconds(20)) {
                lines.withLock { $0.first?.hasPrefix("the mirror call failed") } == true
            }
        }
    }

    private func answers(_ port: Int, _ text: String) async throws -> [IngestRawAnswer] {
        try await IngestServerFixture.exchange(
            port, text.replacing("Host: a\r\n", with: "Host: a\r\nConnection: close\r\n"))
    }
}
