import NIOCore
import ServiceKit
import TestSupport
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: limits of size and time", .serialized)
struct IngestLimitTests {
    /// Sends requests of one below the limit, the limit, and one above it.
    private func check(_ name: String, limit: Int, over status: Int, _ request: (Int) -> String) async throws {
        let requests = [limit - 1, limit, limit + 1].map(request)
        var limits = ConnectionLimits()
        limits.body = .seconds(60)  // a slow machine needs some seconds for 16 MiB
        try await IngestServerFixture.serve(limits: limits) { port in
            for (index, request) in requests.enumerated() {
                let answers = try await IngestServerFixture.exchange(port, request)
                #expect(answers.map(\.status) == [index < 2 ? 200 : status], "\(name) \(limit - 1 + index)")
                if index == 2 { #expect(answers.first?.refusalFlaw == nil, "SEC19: \(name)") }
            }
        }
    }

    private static let fields = [
        ("Host", "t"), ("Content-Type", "application/json"),
        ("Content-Length", "\(IngestSmugglingCase.json.utf8.count)"),
        ("Connection", "close"),
    ]

    /// A push with additional header fields or another target.
    private static func request(_ more: [(String, String)] = [], target: String = IngestSmugglingCase.target) -> String
    {
        (fields + more).reduce("POST \(target) HTTP/1.1\r\n") { $0 + "\($1.0): \($1.1)\r\n" } + "\r\n"
            + IngestSmugglingCase.json
    }

    @Test("SEC8: a URI of 8,192 bytes is taken, one of 8,193 is answered 414")
    func uri() async throws {
        try await check("URI", limit: 8_192, over: 414) { bytes in
            let target = IngestSmugglingCase.target + "&x="
            return Self.request(target: target + String(repeating: "x", count: bytes - target.utf8.count))
        }
        try await check("URI of the description", limit: 8_192, over: 414) { bytes in
            let query = String(repeating: "x", count: bytes - 14)
            return "GET /openapi.json?\(query) HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
        }
    }

    @Test("SEC4: a head of 16,384 bytes and 100 fields is taken, one byte or field more is answered 431")
    func head() async throws {
        try await check("head bytes", limit: 16_384, over: 431) { bytes in
            let target = IngestSmugglingCase.target.utf8.count
            let given = Self.fields.map { $0.0.utf8.count + $0.1.utf8.count }.reduce(target, +)
            return Self.request([("X-A", String(repeating: "x", count: bytes - given - 3))])
        }
        try await check("fields", limit: 100, over: 431) { count in
            Self.request(Array(repeating: ("a", "b"), count: count - Self.fields.count))
        }
    }

    @Test("SEC8: a body at its limit is taken, one byte more is answered 413, by length and in chunks")
    func body() async throws {
        let item = IngestSmugglingCase.json
        for (path, limit, text) in [("single", 65_536, item), ("batch", 16 << 20, #"{"items":[\#(item)]}"#)] {
            let head =
                "POST /webapi/sync/\(path)?instanceId=w_app HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
                + "Content-Type: application/json\r\n"
            func padded(_ bytes: Int) -> String { text + String(repeating: " ", count: bytes - text.utf8.count) }
            try await check("\(path) by length", limit: limit, over: 413) { bytes in
                head + "Content-Length: \(bytes)\r\n\r\n" + padded(bytes)
            }
            try await check("\(path) in chunks", limit: limit, over: 413) { bytes in
                head + "Transfer-Encoding: chunked\r\n\r\n\(String(bytes, radix: 16))\r\n\(padded(bytes))\r\n0\r\n\r\n"
            }
        }
    }

    // MARK: Time

    private static let short: ConnectionLimits = {
        var limits = ConnectionLimits()
        limits.head = .milliseconds(300)
        limits.body = .milliseconds(300)
        limits.idle = .milliseconds(300)
        limits.stall = .milliseconds(300)
        limits.linger = .milliseconds(200)
        return limits
    }()

    /// Sends the first text at once, and then a byte of the second one every 20 ms until an answer or the end arrives.
    private func trickle(_ port: Int, _ first: String, _ second: String) async throws -> [IngestRawAnswer] {
        try await OwnThread.run {
            let connection = try IngestRawConnection(port: port)
            connection.send(first)
            for byte in second.unicodeScalars where !connection.isReadable(within: 20) { connection.send(String(byte)) }
            // Otherwise the pause after the last byte would end the connection.
            guard second.isEmpty || connection.isReadable(within: 0) else { throw Failure("4 s of bytes were taken") }
            #expect(connection.readToEnd())
            return connection.answers
        }
    }

    @Test("SEC3: a head or a body that comes byte by byte is answered 408 at its deadline")
    func slow() async throws {
        let submission = StubSubmission()
        try await IngestServerFixture.serve(limits: Self.short, submission: submission) { port in
            let letters = String(repeating: "x", count: 200)
            let body = IngestSmugglingCase.head("Content-Length: 200\r\n")
            let chunks = IngestSmugglingCase.chunks("ff\r\n")
            // A chunk with a huge size and no data.
            let huge = IngestSmugglingCase.chunks("fffffffffffffff\r\n" + IngestSmugglingCase.json)
            for (first, second) in [("", "GET /" + letters), (body, letters), (chunks, letters), (huge, "")] {
                let answers = try await trickle(port, first, second)
                #expect(answers.map(\.status) == [408], "\(first)")
                #expect(answers.first?.refusalFlaw == nil)
            }
        }
        #expect(submission.pushes.isEmpty)
    }

    @Test("SEC3: a silent connection is closed, before any request and after one")
    func idle() async throws {
        try await IngestServerFixture.serve(limits: Self.short) { port in
            let silent = try await IngestServerFixture.exchange(port, "")
            #expect(silent.isEmpty)
            let served = try await IngestServerFixture.exchange(port, IngestSmugglingCase.push())
            #expect(served.map(\.status) == [200])
        }
    }

    @Test("SEC3: a caller that sends requests and reads no answer is cut off")
    func neverReads() async throws {
        var limits = Self.short
        limits.idle = .seconds(60)
        try await IngestServerFixture.serve(limits: limits) { port in
            let isCutOff = try await Self.sendsUntilReset(port)
            #expect(isCutOff)
        }
    }

    private static func sendsUntilReset(_ port: Int) async throws -> Bool {
        try await OwnThread.run {
            let connection = try IngestRawConnection(port: port, bufferBytes: 4_096)
            let requests = String(repeating: "GET /openapi.json HTTP/1.1\r\nHost: t\r\n\r\n", count: 1_000)
            for _ in 0..<10_000 where !connection.send(requests) { return connection.isReset }
            return false
        }
    }
}
