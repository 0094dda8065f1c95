import BackendCalls
import Foundation
import NIOHTTP1
import SyncModel
import Testing

@testable import Relay
@testable import SyncStore
@testable import TenantCalls

/// A stored operation, for tests of the relay's rules.
enum HeldSample {
    static func operation(
        _ id: String = "o1", device: String = "d1", number: Int64 = 1, outcome: DeviceOperationState? = .accepted,
        message: String = "", imported: String? = nil, body: [UInt8] = []
    ) -> DeviceOperationStore.StoredOperation {
        DeviceOperationStore.StoredOperation(
            number: number, instanceID: InstanceID("i"), deviceID: DeviceID(device), userID: UserID("u"), session: [],
            operation: DeviceOperation(
                id: id, component: "ORDER", key: "k\"1", name: "update", body: body,
                submittedAt: WallTime(milliseconds: 7)), children: [], childCount: 0, bodyBytes: body.count,
            takenAt: WallTime(milliseconds: 8), waited: .zero, state: .waiting, attempts: 2, outcome: outcome,
            code: outcome == .accepted ? 200 : 409, message: message, requestID: "\(number)-2",
            answeredAt: WallTime(milliseconds: 9), imported: imported.map { Array($0.utf8) }, resultGroup: "", at: nil)
    }
}

@Suite("A relay's rules for tenants' responses")
struct RelayRuleTests {
    private func outcome(_ status: Int, _ body: String = "", _ headers: HTTPHeaders = [:]) -> CallOutcome {
        CallOutcome(
            TenantResponse(
                status: .init(statusCode: status), headers: headers, body: Array(body.utf8), keepsConnection: true))
    }

    @Test("2xx is done with any body; message and new state are used if present")
    func accepted() {
        for (body, message, imported) in [
            ("", "", nil), ("<html>", "", nil), ("[]", "", nil), ("{}", "", nil), (#"{"import": null}"#, "", nil),
            (#"{"message": "ok", "import": { "a" : [ 1.50 ] }}"#, "ok", #"{"a":[1.50]}"#),
            (#"{"message": 5, "import": "x\n"}"#, "", #""x\n""#), (#"{"import": true}"#, "", "true"),
            (#"{"message": "a\u0000b"}"#, "ab", nil),
        ] as [(String, String, String?)] {
            for status in [200, 201, 204] {
                #expect(
                    outcome(status, body) == .accepted(message: message, imported: imported.map { Array($0.utf8) }),
                    "\(status) \(body)")
            }
        }
        let long = outcome(200, #"{"message": "\#(String(repeating: "é", count: 1_200))"}"#)
        #expect(long == .accepted(message: String(repeating: "é", count: 1_000), imported: nil))
    }

    @Test("a temporary failure is retried after the requested pause; only absences count for the breaker")
    func again() {
        for status in [408, 425, 429, 500, 501, 502, 503, 504, 599, 301, 304] {
            guard case .again(let code, _, let named, let isAnswer) = outcome(status) else {
                Issue.record("\(status) is final")
                continue
            }
            #expect(code == status && named == nil && isAnswer == ![429, 502, 503, 504].contains(status))
        }
        for (text, named) in [("7", 7), ("-1", nil), ("soon", nil)] as [(String, Int64?)] {
            guard case .again(_, _, let found, _) = outcome(503, "", ["Retry-After": text]) else { continue }
            #expect(found == named.map { .seconds($0) })
        }
    }

    @Test("any other 4xx is final, with the tenant's own code where it is one")
    func refused() {
        #expect(outcome(404) == .refused(code: 404, message: ""))
        #expect(outcome(409, #"{"code": 423, "message": "no"}"#) == .refused(code: 423, message: "no"))
        for code in ["200", "\"423\"", "12345", "1.5"] {
            #expect(outcome(400, #"{"code": \#(code)}"#) == .refused(code: 400, message: ""))
        }
    }

    @Test("pauses double up to 300 s, a requested one counts, and number or age ends the retries")
    func pauses() {
        let rule = RetryRule(firstPause: .seconds(1), attempts: 50, age: .seconds(100))
        func pause(_ attempt: Int, waited: Int = 0, named: Duration? = nil) -> Duration? {
            rule.pause(after: attempt, waited: .seconds(waited), named: named, random: 0.5)
        }
        #expect([1, 2, 3, 9, 10, 40].map { pause($0) } == [1, 2, 4, 256, 300, 300].map { .seconds($0) })
        #expect(pause(1, named: .seconds(90)) == .seconds(90) && pause(9, named: .seconds(1)) == .seconds(256))
        #expect(pause(1, named: .seconds(1_000_000)) == .seconds(300))
        #expect(pause(49) != nil && pause(50) == nil)
        #expect(pause(9, waited: 1_000) != nil && pause(10, waited: 99) != nil && pause(10, waited: 100) == nil)
    }

    @Test("a JSON body is sent unchanged, any other body as bytes, an empty one not at all")
    func question() throws {
        func body(_ bytes: [UInt8]) throws -> String {
            let held = HeldSample.operation(body: bytes)
            let child = DeviceOperation(id: "c", component: "L", key: "2", name: "create", body: Array("[]".utf8))
            return String(decoding: CallBody.body(of: held, children: [child], sessionID: "s"), as: UTF8.self)
        }
        let frame = (
            #"{"operationId":"o1","component":"ORDER","entityKey":"k\"1","operation":"update""#,
            #","userId":"u","deviceId":"d1","sessionId":"s","submittedAt":7,"attempt":2,"children":["#
                + #"{"operationId":"c","component":"L","entityKey":"2","operation":"create","body":[]}]}"#
        )
        #expect(try body([]) == frame.0 + frame.1)
        #expect(try body(Array(#"{"a": 1.0}"#.utf8)) == frame.0 + #","body":{"a": 1.0}"# + frame.1)
        #expect(try body([0xFF]) == frame.0 + #","bodyBase64":"/w==""# + frame.1)
        #expect(try body(Array(#"1},"attempt":9"#.utf8)).contains("bodyBase64"), "nobody writes into the question")
        #expect(CallBody.idempotencyKey(of: HeldSample.operation()) == "i/d1/o1")
    }

    @Test("a result is complete; a state that does not fit is left out, then a long message is cut")
    func result() {
        #expect(
            ResultPayload.fitting(HeldSample.operation(message: "m", imported: "[1]"))
                == #"{"operationId":"o1","userId":"u","component":"ORDER","entityKey":"k\"1","operation":"update","#
                + #""accepted":true,"code":200,"level":"INFO","message":"m","requestId":"1-2","timestamp":9,"import":[1]}"#
        )
        let large = ResultPayload.fitting(
            HeldSample.operation(outcome: .refused, imported: "\"\(String(repeating: "x", count: 4_000))\""))
        #expect(!large.contains("import") && large.contains(#""accepted":false,"code":409,"level":"ERROR""#))
        let most = ResultPayload.fitting(HeldSample.operation(message: String(repeating: "\u{1}", count: 1_000)))
        #expect(ResultPayload.payload([most]).utf16.count <= Limits.payloadUnits)
    }

    @Test("results of one device share an oplog up to its limit, each once, in their order")
    func groups() {
        var names = (1...).lazy.map { "g\($0)" }.makeIterator()
        var held = (0..<40).map {
            HeldSample.operation(
                "o\($0)", device: "d\($0 % 2)", number: Int64($0), message: String(repeating: "x", count: 300))
        }
        ResultGroups.name(&held) { names.next() ?? "" }
        #expect(held.allSatisfy { !$0.resultGroup.isEmpty })
        let groups = Dictionary(grouping: held, by: \.resultGroup)
        #expect(groups.count > 2 && groups.count < 12)
        for group in groups.values {
            #expect(Set(group.map(\.deviceID)).count == 1)
            #expect(
                ResultPayload.payload(group.map(ResultPayload.fitting)).utf16.count <= Limits.payloadUnits)
            let numbers = group.map(\.number)
            #expect(
                numbers == Array(stride(from: numbers[0], through: numbers[0] + Int64(2 * (numbers.count - 1)), by: 2)))
        }
    }

    @Test("a tenant has its own limit; a silent tenant is paused, and others continue")
    func slots() throws {
        var slots = TenantSlots(concurrency: 3, runningMax: 5)
        let (slow, other, now) = (InstanceID("slow"), InstanceID("other"), ContinuousClock.now)
        var passes: [CircuitBreaker.Pass] = []
        for left in [3, 2, 1] {
            #expect(slots.free(for: slow, at: now) == left)
            let pass = slots.begin(slow, at: now)
            passes.append(try #require(pass))
        }
        #expect(slots.free(for: slow, at: now) == 0 && slots.free(for: other, at: now) == 2)
        for pass in passes { slots.ended(slow, pass, withAnswer: false, at: now) }
        for _ in 0..<2 {
            let pass = slots.begin(slow, at: now)
            slots.ended(slow, try #require(pass), withAnswer: false, at: now)
        }
        let none = slots.begin(slow, at: now)
        #expect(slots.free(for: slow, at: now) == 0 && none == nil)
        #expect(slots.free(for: other, at: now) == 3 && slots.running == 0)
        let later = now + CircuitBreaker.openFor
        #expect(slots.free(for: slow, at: later) == 1)
        let begun = slots.begin(slow, at: later)
        let trial = try #require(begun)
        #expect(slots.free(for: slow, at: later) == 0)
        slots.ended(slow, trial, withAnswer: true, at: later)
        #expect(slots.free(for: slow, at: later) == 3)
    }
}

@Suite("The first turn of a relay's claim")
struct TurnCursorTests {
    private let id = InstanceID("i")

    private func held(_ milliseconds: Int64, attempts: Int = 1) -> DeviceOperationStore.StoredOperation {
        var held = HeldSample.operation(number: milliseconds)
        (held.attempts, held.at) = (attempts, WallTime(milliseconds: milliseconds))
        return held
    }

    private func turn(_ cursor: ClaimCursor) -> Int64? { cursor.turn(of: id)?.milliseconds }

    @Test("after the last first attempt of a claim; later attempts do not count")
    func claims() {
        var cursor = ClaimCursor()
        #expect(turn(cursor) == nil)
        cursor.claimed([held(900, attempts: 2)])
        #expect(turn(cursor) == nil)
        cursor.claimed([held(500), held(700), held(900, attempts: 3), held(600)])
        #expect(turn(cursor) == 700 && cursor.turn(of: InstanceID("j")) == nil)
        cursor.claimed([])
        #expect(turn(cursor) == 700)
        cursor.claimed([held(400)])
        #expect(turn(cursor) == 400, "more may be behind it")
    }

    @Test("back to operations that moved up, never ahead; from the beginning after a check")
    func moves() {
        var cursor = ClaimCursor()
        cursor.advanced([id: WallTime(milliseconds: 300)])
        #expect(turn(cursor) == nil, "the beginning is before all")
        cursor.claimed([held(500)])
        cursor.advanced([id: WallTime(milliseconds: 800)])
        #expect(turn(cursor) == 500)
        cursor.advanced([id: WallTime(milliseconds: 300)])
        #expect(turn(cursor) == 300)
        cursor.forget()
        #expect(turn(cursor) == nil)
    }
}
