import BusMessages
import Foundation
import NIOHTTP1
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("H1, H5, R12: an answer names the outcome, and whether a repeat can help")
struct IngestAnswerTests {
    private static let push = Array(#"{"bizType":"orders","linkToken":"u","thirdMsgId":"t","payload":"p"}"#.utf8)
    private static let batch = Array(#"{"items":[\#(String(decoding: push, as: UTF8.self))]}"#.utf8)
    private static let user = Array(#"{"userId":"u"}"#.utf8)
    private static let name = "instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=t"

    @Test("every code has the status, success and retryable of the spec")
    func table() {
        let rows: [(ResultCode, status: Int, success: Bool, retryable: Bool)] = [
            (.success, 200, true, false), (.duplicatedBizID, 200, true, false), (.notOnline, 200, true, false),
            (.argsIsNull, 200, false, false), (.thirdMessageIDIsNull, 200, false, false),
            (.thirdMessageIDLong, 200, false, false), (.payloadLong, 200, false, false),
            (.bizNotOnline, 200, false, false), (.notSupportGlobal, 200, false, false),
            (.systemError, 200, false, true), (.badRequest, 400, false, false), (.unauthorized, 401, false, false),
            (.forbidden, 403, false, false), (.notFound, 404, false, false), (.methodNotAllowed, 405, false, false),
            (.timeout, 408, false, true), (.lengthRequired, 411, false, false), (.tooLarge, 413, false, false),
            (.uriTooLong, 414, false, false), (.unsupportedMediaType, 415, false, false),
            (.rateLimited, 429, false, true), (.headersTooLarge, 431, false, false), (.unavailable, 503, false, true),
        ]
        #expect(rows.map(\.0) == ResultCode.allCases)
        for (code, status, success, retryable) in rows {
            #expect(
                code.status == status && code.isSuccess == success && code.isRetryable == retryable
                    && code.isAttempted == (status == 200), "\(code)")
            #expect(ResultCode(refusalStatus: status) == (status == 200 ? nil : code), "a status is of one refusal")
            let attempted = status == 200 ? "" : #","attempted":false"#
            #expect(
                APIAnswer.result(code).body(requestID: "r")
                    == #"{"success":\#(success),"msg":"\#(code.rawValue)","retryable":\#(retryable)\#(attempted),"#
                    + #""requestId":"r"}"#)
            let answer = HTTPAnswer(.result(code, detail: "x"))
            #expect(Int(answer.status.code) == status)
        }
    }

    @Test("the answer's text has the members of H1 in their order")
    func text() {
        let result = APIAnswer.result(.success, oplogID: OplogID(1 << 40), detail: "a \"b\"\n.")
        #expect(
            result.body(requestID: "r")
                == #"{"success":true,"msg":"SUCCESS","retryable":false,"oplogId":1099511627776,"#
                + #""detail":"a \"b\"\n.","requestId":"r"}"#)
    }

    /// A situation and the required answer.
    struct Situation: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: ResultCode
        let answer: @Sendable () async -> APIAnswer

        init(_ name: String, _ code: ResultCode, _ answer: @escaping @Sendable () async -> APIAnswer) {
            (testDescription, self.code, self.answer) = (name, code, answer)
        }
    }

    @Test(
        "SYSTEM_ERROR is answered exactly where the outcome is unknown",
        arguments: submissions + operations + starting)
    func situations(situation: Situation) async {
        let answer = await situation.answer()
        let isRefusal = situation.code == .unavailable
        #expect(answer.code == situation.code && answer.isRetryable && answer.detail?.hasSuffix(".") == true)
        #expect(answer.isAttempted != isRefusal && HTTPAnswer(answer).status == (isRefusal ? .serviceUnavailable : .ok))
        let headers = HTTPAnswer(answer).headers(requestID: "r").map(\.name)
        #expect(headers.contains("Retry-After") == isRefusal)
    }

    private static let submissions =
        [
            (PushOutcome.notAttempted, ResultCode.unavailable), (.unknown, .systemError),
        ].flatMap { outcome, code in
            [
                Situation("single: \(outcome)", code) {
                    await PushIntake.stub(StubSubmission(outcome)).answer(
                        scope: .single, instanceID: "w_app", body: push)
                },
                Situation("global: \(outcome)", code) {
                    await PushIntake.stub(StubSubmission(outcome)).answer(
                        scope: .global, instanceID: "w_app",
                        body: Array(#"{"bizType":"news","thirdMsgId":"t","payload":"p"}"#.utf8))
                },
                Situation("item of a batch: \(outcome)", code) {
                    let answer = await PushIntake.stub(StubSubmission(outcome)).answerBatch(
                        instanceID: "w_app", body: batch)
                    #expect(answer.code == .success && answer.isRetryable && HTTPAnswer(answer).status == .ok)
                    return answer.results?.first ?? answer
                },
            ]
        } + [
            Situation("single: too many in flight", .unavailable) {
                await PushIntake.stub(inFlightMaximum: 0).answer(scope: .single, instanceID: "w_app", body: push)
            }
        ]

    /// The failures of the bus, and the answers for a command that changes data.
    private static let failures: [(BusError.Code, ResultCode)] = [
        (.unavailable, .unavailable), (.unanswered, .systemError), (.failed(notAttempted: true), .systemError),
        (.failed(notAttempted: false), .systemError),
    ]

    private static let operations = failures.flatMap { failure, code in
        let intake = OperationIntake.stub { _ in .failure(BusError(failure, "test")) }
        return [
            Situation("recall: \(failure)", code) { await intake.recall(instanceID: "w_app", body: push) },
            Situation("revoke: \(failure)", code) { await intake.revoke(instanceID: "w_app", body: user) },
            // These two change no data, so their outcome is never unknown.
            Situation("trace: \(failure)", .unavailable) { await intake.trace(parameters) },
            Situation("dry run: \(failure)", .unavailable) {
                await PushIntake(
                    directory: StubDirectory(), submission: StubSubmission(), operations: intake, inFlightMaximum: 1
                ).answer(scope: .single, instanceID: "w_app", body: push, isDryRun: true)
            },
        ]
    }

    private static let starting: [Situation] = {
        var directory = StubDirectory()
        directory.isLoaded = false
        let pushes = PushIntake.stub(directory: directory)
        let others = OperationIntake.stub(directory: directory)
        return [
            Situation("starting: single", .unavailable) {
                await pushes.answer(scope: .single, instanceID: "w_app", body: push)
            },
            Situation("starting: batch", .unavailable) { await pushes.answerBatch(instanceID: "w_app", body: batch) },
            Situation("starting: dry run", .unavailable) {
                await pushes.answer(scope: .single, instanceID: "w_app", body: push, isDryRun: true)
            },
            Situation("starting: recall", .unavailable) { await others.recall(instanceID: "w_app", body: push) },
            Situation("starting: revoke", .unavailable) { await others.revoke(instanceID: "w_app", body: user) },
            Situation("starting: trace", .unavailable) { await others.trace(parameters) },
        ]
    }()

    private static let parameters: @Sendable (String) -> String? = { wanted in
        name.split(separator: "&").map { $0.split(separator: "=") }.first { $0[0] == wanted }.map { String($0[1]) }
    }

    @Test("a batch is retryable when one of its items is, and each item says whether it is")
    func batchItems() async {
        let items = [
            APIAnswer.result(.success, oplogID: OplogID(1)), .result(.argsIsNull, detail: "x"), .unavailable("x"),
        ]
        var answer = APIAnswer.result(.success)
        answer.results = Array(items[..<2])
        #expect(!answer.isRetryable)
        answer.results = items
        #expect(answer.isRetryable)
        #expect(
            answer.body(requestID: "r")
                == #"{"success":true,"msg":"SUCCESS","retryable":true,"results":["#
                + #"{"success":true,"msg":"SUCCESS","retryable":false,"oplogId":1},"#
                + #"{"success":false,"msg":"ARGS_IS_NULL","retryable":false,"detail":"x"},"#
                + #"{"success":false,"msg":"UNAVAILABLE","retryable":true,"attempted":false,"detail":"x"}],"#
                + #""requestId":"r"}"#)
    }

    @Test("the guard of a connection refuses with a code for each status that it gives")
    func guardStatuses() {
        for status: HTTPResponseStatus in [
            .badRequest, .requestTimeout, .payloadTooLarge, .uriTooLong, .requestHeaderFieldsTooLarge,
            .serviceUnavailable,
        ] {
            #expect(ResultCode(refusalStatus: Int(status.code)) != nil, "\(status)")
            let refusal = IngestGuarding(metrics: IngestMetrics()).refusal(status, "x")
            #expect(refusal.body.contains(#""attempted":false"#))
            #expect(refusal.headers.contains { $0.0 == "Retry-After" } == (status == .serviceUnavailable))
        }
    }

    // MARK: Validity

    @Test("D11: an end beyond retention is capped, and the answer says until when; one in the past says so")
    func validity() async {
        let now: Int64 = 1_700_000_000_000
        let latest = StubSubmission.storedAt + Limits.retention
        for scope in [PushScope.single, .global] {
            for (end, detail) in [
                (now + 60_000, nil), (latest.milliseconds, nil), (latest.milliseconds + 60_000, nil),
                (latest.milliseconds + 60_001, "\(latest.milliseconds) (\(latest.text))"),
                (9_999_999_999_999, "\(latest.milliseconds) (\(latest.text))"), (now, "past"), (now - 1, "past"),
            ] as [(Int64, String?)] {
                var request = IngestTableRequest(scope)
                request.set("validTimeEnd", json: "\(end)")
                let (answer, _) = await request.send()
                #expect(
                    detail.map { answer.content.detail?.contains($0) == true } ?? (answer.content.detail == nil),
                    "\(end): \(answer.content.detail ?? "")")
                let isOver = scope == .single && end <= now
                #expect(answer.content.code == (isOver ? .notOnline : .success))
            }
        }
    }

    @Test("D11: the store's clock decides validity, and its reply has the valid end")
    func storeClock() {
        func validity(_ asked: Int64?, _ end: Int64, at now: Int64) -> StoredValidity {
            StoredValidity(
                asked: asked.map { WallTime(milliseconds: $0) }, validUntil: WallTime(milliseconds: end),
                storedAt: WallTime(milliseconds: now))
        }
        #expect(validity(nil, 100_000, at: 0) == .asAsked)
        #expect(validity(100_000, 100_000, at: 99_999) == .asAsked)
        #expect(validity(100_000, 100_000, at: 100_000) == .over)
        #expect(validity(300_000, 100_000, at: 0) == .capped(WallTime(milliseconds: 100_000)))
        #expect(StoredValidity.asAsked.detail == nil)
    }
}
