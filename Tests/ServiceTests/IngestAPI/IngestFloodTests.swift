import Foundation
import NIOCore
import ServiceKit
import SyncModel
import TestSupport
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: slow callers, and callers that send too much", .serialized)
struct IngestFloodTests {
    private typealias Case = IngestSmugglingCase

    /// The resident memory of this process in kilobytes.
    private static func residentKilobytes() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try #require(Int(line.filter(\.isNumber)))
    }

    @Test("SEC4: 100,000 small headers are answered 431, each time, and memory stays where it was")
    func manyHeaders() async throws {
        // A separate process, so that no other test uses its memory.
        await #expect(processExitsWith: .success) {
            try await IngestServerFixture.serve { port in
                let header = "a: " + String(repeating: "b", count: 45) + "\r\n"
                let request =
                    "POST \(Case.target) HTTP/1.1\r\nHost: t\r\n" + String(repeating: header, count: 100_000) + "\r\n"
                func attack() async throws {
                    let answers = try await IngestServerFixture.exchange(port, request)
                    #expect(answers.map(\.status) == [431])
                }
                for _ in 0..<10 { try await attack() }
                let before = try Self.residentKilobytes()
                for _ in 0..<40 { try await attack() }
                // All headers together are 200 MB.
                #expect(try Self.residentKilobytes() - before < 50_000)
            }
        }
    }

    @Test("SEC4: bodies of all connections together are bounded: 503 above it, until those before are answered")
    func bodies() async throws {
        var limits = ConnectionLimits()
        limits.body = .seconds(120)
        let push = Case.json + String(repeating: " ", count: 60_000 - Case.json.utf8.count)
        let head = "POST \(Case.target) HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
        let request = head + "Connection: close\r\nContent-Length: 60000\r\n\r\n" + push
        try await IngestServerFixture.serve(limits: limits, bodies: BodyBudget(maximum: 100_000)) { port in
            func answer() async throws -> IngestRawAnswer {
                try #require(try await IngestServerFixture.exchange(port, request).first)
            }
            #expect(try await answer().status == 200)
            // A Content-Length alone reserves no budget; received bytes do.
            func connect() throws -> IngestRawConnection {
                let slow = try IngestRawConnection(port: port)
                slow.send(head + "Connection: close\r\nContent-Length: 60000\r\n\r\n")
                return slow
            }
            var slow = try connect()
            for _ in 0..<5 { #expect(try await answer().status == 200) }
            slow.send(String(push.dropLast()))
            try await eventually("a refusal", within: .seconds(60)) {
                // The body of an answered request counts until its connection is done. Then the slow one is refused.
                if slow.isReadable(within: 0) {
                    slow = try connect()
                    slow.send(String(push.dropLast()))
                }
                return try await answer().status == 503
            }
            let refused = try await answer()
            #expect(refused.fields["retry-after"] != nil && refused.fields["connection"] == "close")
            #expect(refused.refusalFlaw == nil)
            slow.send(" ")
            #expect(slow.readToEnd() && slow.answers.map(\.status) == [200])
            for _ in 0..<5 { #expect(try await answer().status == 200) }
        }
    }

    @Test("SEC4: a compressed request of any encoding is answered 415, and nothing is stored")
    func compressed() async throws {
        let submission = StubSubmission()
        try await IngestServerFixture.serve(submission: submission) { port in
            for encoding in ["gzip", "deflate", "br", "zstd", "x-gzip", "UTF-8, gzip", "identity, gzip"] {
                let answers = try await IngestServerFixture.exchange(
                    port, Case.push("Content-Encoding: \(encoding)\r\n") + Case.smuggled)
                #expect(answers.map(\.status) == [415], "\(encoding)")
            }
        }
        #expect(submission.pushes.isEmpty)
    }

    // MARK: Slow callers

    private static let short: ConnectionLimits = {
        var limits = ConnectionLimits()
        limits.head = .milliseconds(300)
        limits.body = .milliseconds(300)
        limits.linger = .milliseconds(200)
        return limits
    }()

    /// Sends the first text, then a byte every 20 ms until the server ends the connection.
    private func drip(_ port: Int, _ first: String, then byte: String = "x") async throws -> [IngestRawAnswer] {
        try await OwnThread.run {
            let connection = try IngestRawConnection(port: port)
            connection.send(first)
            for _ in 0..<500 {
                if connection.isReadable(within: 20) {
                    guard connection.readSome() else { return connection.answers }
                } else {
                    connection.send(byte)
                }
            }
            throw Failure("10 s of dripping were taken; there is \(connection.answers)")
        }
    }

    @Test("SEC3: an answer that comes before the end of the body gives the rest of it no more time")
    func earlyAnswer() async throws {
        try await IngestServerFixture.serve(limits: Self.short) { port in
            // The trace and the description take no body, so they are answered at once.
            for target in ["/openapi.json", "/webapi/sync/trace?instanceId=w_app"] {
                let answers = try await drip(
                    port, "GET \(target) HTTP/1.1\r\nHost: t\r\nContent-Length: 60000\r\n\r\n")
                #expect(answers.count == 1, "\(target)")
            }
        }
    }

    @Test("SEC3: part of a head behind another request has no more time than any head")
    func pipelined() async throws {
        try await IngestServerFixture.serve(limits: Self.short) { port in
            for part in ["GET /", "\r\nGET /", "POST \(Case.target) HTTP/1.1\r\nX-A: "] {
                let answers = try await drip(port, Case.push() + part)
                #expect(answers.map(\.status) == [200, 408], "\(part)")
            }
        }
    }

    @Test("SEC3: empty lines between requests keep no connection open")
    func emptyLines() async throws {
        try await IngestServerFixture.serve(limits: Self.short) { port in
            let answers = try await drip(port, Case.push(), then: "\r\n")
            #expect(answers.first?.status == 200)
        }
    }

    // MARK: Too much

    @Test("SEC3: a source at its limit of connections is refused until a connection ends")
    func sourceConnections() async throws {
        var limits = ConnectionLimits()
        limits.sourceConnections = 3
        try await IngestServerFixture.serve(limits: limits) { port in
            let (refused, served) = try await OwnThread.run {
                var slow = try (0..<3).map { _ in try IngestRawConnection(port: port) }
                // One answered request for each, so that the server has accepted all connections.
                for connection in slow {
                    connection.send(Case.push())
                    guard connection.isReadable(within: 5_000) else { throw Failure("not served") }
                }
                let refused = try IngestRawConnection(port: port)
                guard refused.isReadable(within: 5_000), refused.readToEnd() else { throw Failure("not refused") }
                slow.removeLast()
                // The server notices this after some time.
                for _ in 0..<100 {
                    let next = try IngestRawConnection(port: port)
                    next.send(Case.push("Connection: close\r\n"))
                    _ = next.readToEnd()
                    if next.answers.map(\.status) == [200] { return (refused.answers, true) }
                }
                return (refused.answers, false)
            }
            #expect(refused.map(\.status) == [503])
            #expect(refused.first?.fields["retry-after"] != nil)
            #expect(refused.first?.refusalFlaw == nil)
            #expect(served)
        }
    }

    // MARK: Errors

    @Test("SEC19: health and metrics are not on the API's port")
    func otherPages() async throws {
        try await IngestServerFixture.serve { port in
            for path in ["/metrics", "/livez", "/readyz", "/", "/admin", "/debug/pprof", "/webapi/../metrics"] {
                let answers = try await IngestServerFixture.exchange(
                    port, "GET \(path) HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n")
                #expect(answers.map(\.status) == [404], "\(path)")
                #expect(answers.first?.refusalFlaw == nil, "\(path)")
            }
        }
    }

    @Test("SEC19: while it drains, each call is answered 503 in the API's form")
    func draining() async throws {
        let health = HealthState()
        health.drain()
        try await IngestServerFixture.serve(health: health) { port in
            for request in [Case.push(), "GET /webapi/sync/trace?instanceId=w_app HTTP/1.1\r\nHost: t\r\n\r\n"] {
                let answers = try await IngestServerFixture.exchange(port, request)
                #expect(answers.map(\.status) == [503])
                #expect(answers.first?.refusalFlaw == nil)
            }
        }
    }

    @Test("R11: calls on a kept connection are answered while the process stops; the last answer says so")
    func stopping() async throws {
        var limits = ConnectionLimits()
        limits.drain = .milliseconds(300)
        let (stop, stopping) = AsyncStream.makeStream(of: Void.self)
        try await IngestServerFixture.serve(limits: limits, stop: stop) { port in
            try await OwnThread.run {
                let (caller, idler) = (try IngestRawConnection(port: port), try IngestRawConnection(port: port))
                var calls = 0
                func call(_ connection: IngestRawConnection) {
                    calls += 1
                    connection.send(Case.push())
                    while connection.answers.count < calls, connection.readSome() {}
                }
                call(idler)
                calls = 0
                call(caller)
                stopping.yield()
                while caller.answers.last?.fields["connection"] != "close", caller.answers.count == calls {
                    call(caller)
                }
                #expect(caller.answers.map(\.status) == Array(repeating: 200, count: calls))
                #expect(caller.readToEnd() && idler.readToEnd())
                #expect(idler.answers.count == 1)
            }
        }
    }
}
