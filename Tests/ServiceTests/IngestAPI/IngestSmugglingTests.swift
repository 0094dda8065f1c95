import SyncModel
import TestSupport
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: malformed HTTP and request smuggling", .serialized)
struct IngestSmugglingTests {
    @Test("SEC5: each malformed request has one answer and a closed socket, and no later request is served")
    func corpus() async throws {
        #expect(IngestSmugglingCase.all.count >= 60)
        #expect(Set(IngestSmugglingCase.all.map(\.name)).count == IngestSmugglingCase.all.count)
        let submission = StubSubmission()
        try await IngestServerFixture.serve(submission: submission) { port in
            for item in IngestSmugglingCase.all {
                let before = submission.pushes.count
                let answers = try await IngestServerFixture.exchange(
                    port, item.bytes + IngestSmugglingCase.smuggled, item.name)
                #expect(answers.map(\.status) == [item.status], "\(item.name)")
                let submitted = submission.pushes.dropFirst(before).map(\.thirdMessageID.text)
                #expect(submitted == (item.status == 200 ? ["first"] : []), "\(item.name)")
                guard let answer = answers.first else { continue }
                #expect(answer.fields["connection"] == "close", "\(item.name)")
                if item.status != 200 { #expect(answer.refusalFlaw == nil, "SEC19: \(item.name)") }
            }
        }
    }

    @Test("SEC5: unusual correct requests are served, each once and in order")
    func served() async throws {
        typealias Case = IngestSmugglingCase
        let last = Case.push("Connection: close\r\n")
        let submission = StubSubmission()
        let requests = [
            "\r\n" + last, Case.push(line: "POST http://t\(Case.target) HTTP/1.1") + last,
            Case.head("Transfer-Encoding: Chunked\r\n") + Case.whole + last,
            Case.chunks("\(Case.size);a=b\r\n\(Case.json)\r\n0\r\nX: y\r\n\r\n") + last, Case.push() + last,
        ]
        try await IngestServerFixture.serve(submission: submission) { port in
            for request in requests {
                let answers = try await IngestServerFixture.exchange(port, request)
                #expect(answers.allSatisfy { $0.status == 200 }, "\(request)")
            }
        }
        #expect(submission.pushes.map(\.thirdMessageID.text) == Array(repeating: "first", count: 9))
    }

    @Test("SEC5: a malformed request after a good one is answered after the good one's answer")
    func behindGood() async throws {
        let submission = StubSubmission()
        try await IngestServerFixture.serve(submission: submission) { port in
            for broken in ["junk\r\n\r\n", IngestSmugglingCase.chunks("zz\r\n"), "GET /x HTTP/1.1\r\nHost: t\r\n\r\n"] {
                let answers = try await IngestServerFixture.exchange(
                    port, IngestSmugglingCase.push() + broken + IngestSmugglingCase.smuggled)
                #expect(answers.map(\.status) == [200, broken.hasPrefix("GET") ? 404 : 400], "\(broken)")
            }
        }
        #expect(submission.pushes.map(\.thirdMessageID.text) == ["first", "first", "first"])
    }

    @Test("SEC5: a push in chunks whose last one never comes is not stored, though its JSON is whole")
    func cut() async throws {
        let submission = StubSubmission()
        try await IngestServerFixture.serve(submission: submission) { port in
            let answers = try await OwnThread.run {
                let connection = try IngestRawConnection(port: port)
                connection.send(IngestSmugglingCase.chunks(IngestSmugglingCase.chunk))
                connection.endSending()
                #expect(connection.readToEnd())
                return connection.answers
            }
            #expect(answers.map(\.status) == [400])
        }
        #expect(submission.pushes.isEmpty)
    }

    @Test("SEC5: 100 Continue does not come before the answer to the request before it")
    func continuing() async throws {
        try await IngestServerFixture.serve { port in
            let answers = try await IngestServerFixture.exchange(
                port,
                IngestSmugglingCase.push() + IngestSmugglingCase.push("Expect: 100-continue\r\nConnection: close\r\n"))
            #expect(answers.map(\.status) == [200, 100, 200])
        }
    }

    @Test("SEC19: each 503 has a code and a request id, and nothing about internals")
    func unavailable() async throws {
        var starting = StubDirectory()
        starting.isLoaded = false
        let request = IngestSmugglingCase.push("Connection: close\r\n")
        let check: @Sendable (Int) async throws -> Void = { port in
            let answers = try await IngestServerFixture.exchange(port, request)
            #expect(answers.map(\.status) == [503])
            #expect(answers.first?.refusalFlaw == nil)
            #expect(answers.first?.fields["retry-after"] != nil)
        }
        try await IngestServerFixture.serve(directory: starting, check)
        try await IngestServerFixture.serve(inFlightMaximum: 0, check)
        try await IngestServerFixture.serve(submission: StubSubmission(.notAttempted), check)
    }

    @Test("SEC19: an answer to HEAD has no body")
    func headMethod() async throws {
        try await IngestServerFixture.serve { port in
            let answers = try await IngestServerFixture.exchange(port, "HEAD /openapi.json HTTP/1.1\r\nHost: t\r\n\r\n")
            #expect(answers.map(\.status) == [405])
            #expect(answers.first?.body == "")
        }
    }
}
