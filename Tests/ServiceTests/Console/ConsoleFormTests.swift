import BusMessages
import Foundation
import SyncModel
import TestSupport
import Testing

@testable import Console

@Suite("Console: input that no route accepts") struct ConsoleFormTests {
    private func refusal(
        _ route: Route, parts: [String: String] = [:], query: [String: String] = [:], body: String = ""
    ) -> ConsoleFault? {
        do throws(ConsoleFault) {
            try InputForm.check(route, parts: parts, query: query, body: Array(body.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test("SEC8: NUL is answered 422 with the name of its place, at every route", arguments: ConsoleRoutes.all)
    func zero(_ route: Route) {
        for name in route.pattern.names {
            #expect(refusal(route, parts: [name: "a\0"]) == .wrong(name, "fault.nul"))
            #expect(refusal(route, parts: [name: "a"]) == nil)
        }
        // Also with a name that no route uses: it must not be passed on.
        for name in route.queries.map(\.name) + ["other"] {
            #expect(refusal(route, query: [name: "\0"]) == .wrong(name, "fault.nul"))
        }
        for input in route.inputs {
            for value in [#""a\u0000b""#, #"["\u0000"]"#, #"{"a":{"\u0000":1}}"#] {
                #expect(refusal(route, body: "{\"\(input.name)\":\(value)}") == .wrong(input.name, "fault.nul"))
            }
            #expect(refusal(route, body: #"{"\#(input.name)":"\\u0000"}"#)?.word != "fault.nul", "no NUL: six letters")
        }
    }

    @Test("SEC8: a number beyond 64 bits, or no number, is answered 422, at every route", arguments: ConsoleRoutes.all)
    func numbers(_ route: Route) {
        for query in route.queries where query.form == .whole {
            for value in ["9223372036854775808", "-9223372036854775809", "1e30", "1.5", "x"] {
                #expect(refusal(route, query: [query.name: value]) == .wrong(query.name, "fault.wrongType"), "\(value)")
            }
            #expect(refusal(route, query: [query.name: "9223372036854775807"]) == nil)
        }
        for input in route.inputs where input.form == .whole {
            for value in ["9223372036854775808", "1e30", "-1e300", "1.5"] {
                let fault = refusal(route, body: "{\"\(input.name)\":\(value)}")
                #expect(fault == .wrong(input.name, "fault.wrongType"), "\(value)")
            }
            #expect(refusal(route, body: "{\"\(input.name)\":9223372036854775807}") == nil)
        }
    }

    /// A request with a query or a body.
    private func request(query: [String: String] = [:], body: String = "") -> ConsoleRequest {
        ConsoleRequest(
            method: .get, path: "/", parts: [:], query: query, body: Array(body.utf8), principal: nil,
            language: .english, source: "", requestID: "")
    }

    @Test("SEC8: a number that is too large for a body is wrong input and does not end the process") func largest()
        throws
    {
        struct Input: Decodable { let days: Int }
        for value in ["9223372036854775808", "1e30", "1.5"] {
            let fault = #expect(throws: ConsoleFault.self) {
                _ = try request(body: "{\"days\":\(value)}").input(Input.self)
            }
            #expect(fault?.status == 422 && fault?.word == "fault.wrongType", "\(value)")
        }
        let most = "9223372036854775807"
        for member in ["verdictLifetimeSeconds", "retentionDays", "sessionLength", "requestsPerSecond", "pushesPerDay"]
        {
            for number in [most, "-" + most] {
                let json = "{\"instanceId\":\"a_b\",\"name\":\"n\",\"\(member)\":\(number)}"
                let fault = #expect(throws: ConsoleFault.self) {
                    _ = try JSONDecoder().decode(InstanceInput.self, from: Data(json.utf8)).instance(nil)
                }
                #expect(fault?.status == 422, "\(member)")
            }
        }
    }

    @Test("SEC8: a time is valid up to the year 9999") func times() throws {
        #expect(try request(query: ["from": "0"]).time("from")?.milliseconds == 0)
        #expect(try request().time("from") == nil)
        for value in ["-1", "253402300800000", "9223372036854775807", "x"] {
            #expect(throws: ConsoleFault.wrong("from", "fault.wrongType")) {
                _ = try request(query: ["from": value]).time("from")
            }
        }
    }

    @Test("C9: a record of a push leads to the push") func recordedPush() throws {
        let record = OperationRecord(
            number: 1, recordedAtMicroseconds: 0, actor: "console:alice", source: "", actionCode: 10,
            instanceID: InstanceID("a_b"), subject: "B", before: nil, after: #"{"target":"u","thirdMsgId":"m"}"#,
            previousHash: [], hash: [])
        let name = try #require(RecordedPush(record)).name
        #expect(name.bizType == "B" && name.linkToken == "u" && name.thirdMessageID == "m")
    }

    // MARK: Shared results

    @Test("the passwords of one source use only its share of the password checks") func limiter() async throws {
        let limiter = PasswordHashLimiter(maximum: 3, sourceMaximum: 2)
        func refused(_ source: String) async -> Bool {
            do throws(ConsoleFault) {
                try await limiter.perform(from: source) {}
                return false
            } catch {
                return error == .busy
            }
        }
        try await limiter.perform(from: "a") {
            try? await limiter.perform(from: "a") {
                #expect(await refused("a"))
                #expect(await !refused("b"))
                try? await limiter.perform(from: "b") { #expect(await refused("c"), "all of them are taken") }
            }
        }
        #expect(await !refused("a"))
    }

    @Test("C1: simultaneous equal requests get one shared answer; a fault is not cached") func shared()
        async throws
    {
        let shared = ResponseCache<String, Int>(lifetime: .seconds(60))
        let made = Counting()
        let (begin, go) = AsyncStream.makeStream(of: Void.self)
        let answers = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await shared.answer(of: "a") { () throws(ConsoleFault) in
                        for await _ in begin { break }
                        return await made.next()
                    }
                }
            }
            // One call computes the value, and all others wait for it.
            try await eventually("everybody waits", within: .seconds(10)) { await shared.waiting["a"]?.count == 19 }
            go.finish()
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(answers == Array(repeating: 1, count: 20))
        #expect(try await shared.answer(of: "a") { () throws(ConsoleFault) in await made.next() } == 1, "kept")
        #expect(try await shared.answer(of: "b") { () throws(ConsoleFault) in await made.next() } == 2)
        await #expect(throws: ConsoleFault.busy) {
            _ = try await shared.answer(of: "c") { () throws(ConsoleFault) in throw .busy }
        }
        #expect(try await shared.answer(of: "c") { () throws(ConsoleFault) in await made.next() } == 3)
        let brief = ResponseCache<String, Int>(lifetime: .zero)
        for expected in [4, 5] {
            #expect(try await brief.answer(of: "a") { () throws(ConsoleFault) in await made.next() } == expected)
        }
    }

    private actor Counting {
        private var count = 0
        func next() -> Int {
            count += 1
            return count
        }
    }
}
