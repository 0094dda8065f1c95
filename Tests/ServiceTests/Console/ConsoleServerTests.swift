import BusMessages
import Foundation
import Logging
import NIOCore
import ServiceKit
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@testable import Console

@Suite("Console: its connections are bounded", .serialized)
struct ConsoleServerTests {
    /// Serves the console with routes of the test and without a database, so no person is signed in.
    private static func serve(
        limits: ConnectionLimits, _ routes: [Route], _ body: @Sendable (Int) async throws -> Void
    ) async throws {
        try await serve(limits: limits, try ConsoleRoutes.responder(routes), body)
    }

    private static func serve<Result: Sendable>(
        limits: ConnectionLimits, _ responder: ConsoleResponder, _ body: @Sendable (Int) async throws -> Result
    ) async throws -> Result {
        let (ports, listening) = AsyncStream.makeStream(of: Int.self)
        let server = ConsoleServer(
            host: "127.0.0.1", port: 0, responder: responder, limits: limits, onListening: { listening.yield($0) })
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await server.run() }
            var iterator = ports.makeAsyncIterator()
            let port = try #require(await iterator.next())
            let result = try await body(port)
            group.cancelAll()
            return result
        }
    }

    /// Passes on the metadata of every log line.
    private struct LogCollector: LogHandler {
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace
        let take: @Sendable (Logger.Metadata) -> Void

        init(_ take: @escaping @Sendable (Logger.Metadata) -> Void) { self.take = take }

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) { take(event.metadata ?? [:]) }
    }

    private static let short: ConnectionLimits = {
        var limits = ConnectionLimits.console
        limits.head = .milliseconds(300)
        limits.body = .milliseconds(300)
        limits.idle = .milliseconds(300)
        limits.linger = .milliseconds(200)
        return limits
    }()

    private static let echo = Route(
        method: .post, pattern: RoutePattern("/api/v1/echo"), access: .open, summary: "Takes a body."
    ) { _ throws(ConsoleFault) in .done }

    private static let head = "POST /api/v1/echo HTTP/1.1\r\nHost: t\r\nContent-Length: 200\r\n"

    /// Sends the first text, then a byte every 20 ms until the server ends the connection.
    private func drip(_ port: Int, _ first: String) async throws -> [IngestRawAnswer] {
        try await OwnThread.run {
            let connection = try IngestRawConnection(port: port)
            connection.send(first)
            for _ in 0..<500 {
                if connection.isReadable(within: 20) {
                    guard connection.readSome() else { return connection.answers }
                } else {
                    connection.send("x")
                }
            }
            throw Failure("10 s of dripping were taken")
        }
    }

    @Test("SEC3: a head or a body that comes byte by byte is answered 408 at its deadline, in the console's form")
    func slow() async throws {
        try await Self.serve(limits: Self.short, [Self.echo]) { port in
            for first in ["GET /", Self.head, Self.head + "\r\n"] {
                let answers = try await drip(port, first)
                #expect(answers.map(\.status) == [408], "\(first)")
                #expect(answers.first?.fields["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
                #expect(answers.first?.fields["x-request-id"]?.isEmpty == false)
            }
        }
    }

    @Test("SEC3: a silent connection is closed") func idle() async throws {
        try await Self.serve(limits: Self.short, [Self.echo]) { port in
            let isClosed = try await OwnThread.run { try IngestRawConnection(port: port).readToEnd() }
            #expect(isClosed)
        }
    }

    @Test("SEC3: a source at its limit of connections is refused; other sources are not") func sources()
        async throws
    {
        var limits = ConnectionLimits.console
        limits.sourceConnections = 3
        try await Self.serve(limits: limits, [Self.echo]) { port in
            let answers = try await OwnThread.run {
                let held = try (0..<3).map { _ in try IngestRawConnection(port: port) }
                for connection in held {
                    connection.send("GET /nothing HTTP/1.1\r\nHost: t\r\n\r\n")
                    guard connection.isReadable(within: 10_000) else { throw Failure("not served") }
                }
                let refused = try IngestRawConnection(port: port)
                guard refused.isReadable(within: 10_000), refused.readToEnd() else { throw Failure("not refused") }
                return withExtendedLifetime(held) { refused.answers }
            }
            #expect(answers.map(\.status) == [503])
            #expect(answers.first?.fields["retry-after"] != nil)
        }
    }

    @Test("SEC3: a stream outlives the time of an answer while it is read, and ends when it is not") func streams()
        async throws
    {
        let (parts, more) = AsyncStream.makeStream(of: String.self)
        let small = Route(
            method: .get, pattern: RoutePattern("/small"), access: .open, summary: "What the test says."
        ) { _ throws(ConsoleFault) in ConsoleAnswer(body: .stream(type: "text/plain", parts)) }
        let huge = Route(
            method: .get, pattern: RoutePattern("/huge"), access: .open, summary: "As much as is taken."
        ) { _ throws(ConsoleFault) in
            let text = String(repeating: "x", count: 1 << 16)
            return ConsoleAnswer(body: .stream(type: "text/plain", AsyncStream { text }))
        }
        // Much longer than the time between two parts, also on a busy machine.
        var limits = ConnectionLimits.console
        (limits.answer, limits.linger) = (.seconds(6), .milliseconds(200))
        try await Self.serve(limits: limits, [small, huge]) { port in
            let text = try await OwnThread.run {
                let connection = try IngestRawConnection(port: port)
                connection.send("GET /small HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
                for _ in 0..<80 {
                    more.yield("part\n")
                    guard connection.isReadable(within: 10_000), connection.readSome() else { break }
                    // A pause between two parts.
                    _ = connection.isReadable(within: 100)
                }
                more.finish()
                guard connection.readToEnd() else { throw Failure("it stays open") }
                return String(decoding: connection.received, as: UTF8.self)
            }
            #expect(text.split(separator: "part").count == 81, "\(text)")
            // The client does not read: after the kernels' buffers are full, the connection is closed.
            let isCut = try await OwnThread.run {
                let connection = try IngestRawConnection(port: port, bufferBytes: 4_096)
                let requests = String(repeating: "GET /huge HTTP/1.1\r\nHost: t\r\n\r\n", count: 1_000)
                for _ in 0..<10_000 where !connection.send(requests) { return connection.isReset }
                return false
            }
            #expect(isCut)
        }
    }

    @Test("SEC15: the log has a refusal's request id, its caller and address, and no typed text")
    func requestNames() async throws {
        let lines = Mutex<[Logger.Metadata]>([])
        let logger = Logger(label: "test") { _ in
            LogCollector { metadata in lines.withLock { $0.append(metadata) } }
        }
        let responder = try ConsoleRoutes.responder(
            [], logger: logger, rules: EntryRules(trustedProxies: ["127.0.0.1"]))
        let answers = try await Self.serve(limits: .console, responder) { port in
            try await OwnThread.run {
                let connection = try IngestRawConnection(port: port)
                connection.send(
                    "GET /nothing?user=secret HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 192.0.2.7\r\n"
                        + "Connection: close\r\n\r\n")
                guard connection.readToEnd() else { throw Failure("it stays open") }
                return connection.answers
            }
        }
        #expect(answers.map(\.status) == [404])
        let line = try #require(lines.withLock { $0.first { $0["code"] == "NO_SUCH_PAGE" } })
        #expect(line["request_id"]?.description == answers.first?.fields["x-request-id"])
        #expect(line["source"] == "192.0.2.7" && line["status"] == "404" && line["path"] == "/nothing")
        #expect(!"\(line)".contains("secret"))
    }

    @Test("C1: a change that this console does not have yet is answered 202 with a text, not 404")
    func notSeenYet() throws {
        let context = try #require(ConsoleRoutes.context)
        let control = ControlConnection(context, keysFor: nil)
        let service = ControlService(bus: control.bus, directory: control.directory)
        #expect(throws: ConsoleFault.notSeenYet) { try service.requireCopy(of: .with { $0.version = 9 }) }
        #expect(throws: Never.self) { try service.requireCopy(of: .with { $0.version = 0 }) }
        #expect(ConsoleFault.notSeenYet.status == 202)
        #expect(PageTexts.of(.english).text(ConsoleFault.notSeenYet.word).contains("done"))
    }

    @Test("SEC3: streams are limited in total and for each account; an ended stream frees a place") func streamPlaces()
    {
        let streams = StreamCount(maximum: 4, accountMaximum: 2)
        var alice = [streams.reserve(for: "alice"), streams.reserve(for: "alice")]
        #expect(alice.allSatisfy { $0 != nil })
        #expect(streams.reserve(for: "alice") == nil)
        let others = [streams.reserve(for: "bob"), streams.reserve(for: "carol")]
        #expect(others.allSatisfy { $0 != nil })
        #expect(streams.reserve(for: "dave") == nil, "all streams are in use")
        alice.removeLast()
        #expect(streams.reserve(for: "dave") != nil)
        withExtendedLifetime((alice, others)) {}
    }
}
