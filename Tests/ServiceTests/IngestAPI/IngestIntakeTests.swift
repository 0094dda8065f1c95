import BusMessages
import NIOHTTP1
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: from a checked push to its answer")
struct IngestIntakeTests {
    private func body(_ bizType: String = "orders", extra: String = "") -> [UInt8] {
        Array("{\"bizType\":\"\(bizType)\",\"linkToken\":\"u\",\"thirdMsgId\":\"t\",\"payload\":\"p\"\(extra)}".utf8)
    }

    private func batch(_ bizTypes: String...) -> [UInt8] {
        let items = bizTypes.map { String(decoding: body($0), as: UTF8.self) }
        return Array("{\"items\":[\(items.joined(separator: ","))]}".utf8)
    }

    @Test(
        "a push that the control data forbids has its code and is not submitted",
        arguments: [
            ("nobody", "orders", PushScope.single, ResultCode.bizNotOnline),
            ("w_off", "orders", .single, .bizNotOnline),
            ("w_app", "absent", .single, .bizNotOnline), ("w_app", "offline", .single, .bizNotOnline),
            ("w_app", "offline", .global, .bizNotOnline), ("w_app", "news", .single, .notSupportGlobal),
            ("w_app", "orders", .global, .notSupportGlobal),
        ])
    func forbidden(instanceID: String, bizType: String, scope: PushScope, code: ResultCode) async {
        let submission = StubSubmission()
        let answer = await PushIntake.stub(submission)
            .answer(scope: scope, instanceID: instanceID, body: body(bizType))
        #expect(answer.code == code && answer.isAttempted && answer.detail != nil)
        #expect(submission.pushes.isEmpty)
    }

    @Test(
        "D17: before a push is refused, newer control data is requested, and decides",
        arguments: [
            SyncConfiguration.stub("offline", .user), .stub("absent", .user), .stub("news", .user),
        ])
    func newer(configuration: SyncConfiguration) async {
        var directory = StubDirectory()
        let later = StubDirectory.Later(configuration)
        directory.later = later
        let bizType = configuration.bizType.text
        let submission = StubSubmission()
        let intake = PushIntake.stub(submission, directory: directory)
        let answer = await intake.answer(scope: .single, instanceID: "w_app", body: body(bizType))
        #expect(answer.code == .success && submission.pushes.count == 1)
        #expect(later.requests.load(ordering: .relaxed) == 1)
    }

    @Test("D17: an accepted push requests no control data; a refused batch requests it once")
    func requests() async {
        var directory = StubDirectory()
        let later = StubDirectory.Later()
        directory.later = later
        let intake = PushIntake.stub(directory: directory)
        #expect(await intake.answer(scope: .single, instanceID: "w_app", body: body()).code == .success)
        #expect(later.requests.load(ordering: .relaxed) == 0)
        let answer = await intake.answerBatch(
            instanceID: "w_app", body: batch("absent", "offline", "orders", "absent"))
        #expect(answer.results?.map(\.code) == [.bizNotOnline, .bizNotOnline, .success, .bizNotOnline])
        #expect(later.requests.load(ordering: .relaxed) == 1)
    }

    @Test(
        "D17, H9: a call whose instance appears or changes with the newer control data must be admitted again",
        arguments: ["w_new", "w_app"])
    func changedInstance(id: String) async throws {
        var instance = try #require(StubDirectory().instance(InstanceID("w_app")))
        (instance.id, instance.requiresSignature) = (InstanceID(id), true)
        var directory = StubDirectory()
        directory.later = StubDirectory.Later(.stub("offline", .user), instance: instance)
        let submission = StubSubmission()
        let intake = PushIntake.stub(submission, directory: directory)
        let answer = await intake.answer(scope: .single, instanceID: id, body: body("offline"))
        #expect(answer.code == .unavailable)
        directory.later = StubDirectory.Later(.stub("offline", .user), instance: instance)
        let answers = await PushIntake.stub(submission, directory: directory).answerBatch(
            instanceID: id, body: batch("offline", "orders"))
        #expect(answers.results?.map(\.code) == [.unavailable, .unavailable] && submission.pushes.isEmpty)
    }

    @Test("D17: without newer control data a push is not refused for good: the call can be repeated")
    func unanswered() async {
        var directory = StubDirectory()
        let later = StubDirectory.Later(isAnswered: false)
        directory.later = later
        let intake = PushIntake.stub(directory: directory)
        let answer = await intake.answer(scope: .single, instanceID: "w_app", body: body("absent"))
        #expect(answer.code == .unavailable && answer.isRetryable && answer.retryAfterSeconds != nil)
        let answers = await intake.answerBatch(instanceID: "w_app", body: batch("absent", "absent"))
        #expect(answers.results?.map(\.code) == [.unavailable, .unavailable])
        #expect(later.requests.load(ordering: .relaxed) == 2, "one for each call")
    }

    @Test(
        "an outcome has one answer",
        arguments: [
            (PushOutcome.stored(OplogID(9), online: true), ResultCode.success, 9),
            (.stored(OplogID(9), online: false), .notOnline, 9),
            (.stored(OplogID(9), online: true, validity: .over), .notOnline, 9),
            (.duplicate(OplogID(3)), .duplicatedBizID, 3),
            (.unknown, .systemError, nil), (.refused("No."), .argsIsNull, nil),
        ] as [(PushOutcome, ResultCode, Int64?)])
    func outcomes(outcome: PushOutcome, code: ResultCode, id: Int64?) async {
        let answer = await PushIntake.stub(FixedSubmission(outcome))
            .answer(scope: .single, instanceID: "w_app", body: body())
        #expect(answer.isAttempted && answer.code == code && answer.oplogID?.value == id)
    }

    @Test("global never answers NOT_ONLINE")
    func global() async {
        for online in [true, false] {
            for validity in [StoredValidity.asAsked, .over] {
                let stored = PushOutcome.stored(OplogID(9), online: online, validity: validity)
                let answer = await PushIntake.stub(FixedSubmission(stored))
                    .answer(scope: .global, instanceID: "w_app", body: body("news"))
                #expect(answer.code == .success && (answer.detail != nil) == (validity == .over))
            }
        }
    }

    @Test("D11: only the store decides whether a validity has ended; NOT_ONLINE then has a reason")
    func past() async {
        for (outcome, code) in [
            (PushOutcome.stored(OplogID(7), online: true, validity: .over), ResultCode.notOnline),
            (.stored(OplogID(7), online: true), .success),
        ] {
            let answer = await PushIntake.stub(FixedSubmission(outcome))
                .answer(scope: .single, instanceID: "w_app", body: body(extra: ",\"validTimeEnd\":1700000000000"))
            #expect(answer.code == code && answer.oplogID == OplogID(7))
            #expect((answer.detail != nil) == (code == .notOnline))
        }
    }

    @Test("a push that was not attempted is answered 503 with Retry-After")
    func notAttempted() async {
        let unreached = await PushIntake.stub(StubSubmission(.notAttempted))
            .answer(scope: .single, instanceID: "w_app", body: body())
        #expect(HTTPAnswer(unreached).status == .serviceUnavailable && unreached.retryAfterSeconds != nil)
        var directory = StubDirectory()
        directory.isLoaded = false
        let starting = await PushIntake.stub(directory: directory)
            .answer(scope: .single, instanceID: "w_app", body: body())
        #expect(HTTPAnswer(starting).status == .serviceUnavailable)
    }

    @Test("a push above the bound in flight is answered 503 at once, one below it is not")
    func bounded() async {
        let submission = HeldSubmission()
        let intake = PushIntake.stub(submission, inFlightMaximum: 2)
        await withTaskGroup(of: APIAnswer.self) { group in
            for _ in 0..<2 {
                group.addTask { await intake.answer(scope: .single, instanceID: "w_app", body: self.body()) }
            }
            await submission.waitUntilHeld(2)
            let third = await intake.answer(scope: .single, instanceID: "w_app", body: body())
            #expect(HTTPAnswer(third).status == .serviceUnavailable)
            submission.release()
            for await answer in group { #expect(answer.code == .success) }
        }
        #expect(await intake.answer(scope: .single, instanceID: "w_app", body: body()).code == .success)
    }
}

@Suite("H6: batches")
struct IngestBatchTests {
    private func answer(_ items: String, submission: StubSubmission = StubSubmission()) async -> APIAnswer {
        await PushIntake.stub(submission, inFlightMaximum: 1_000).answerBatch(
            instanceID: "w_app", body: Array("{\"items\":\(items)}".utf8))
    }

    private static func item(_ id: Int, to target: String = "u", bizType: String = "orders") -> String {
        "{\"bizType\":\"\(bizType)\",\"linkToken\":\"\(target)\",\"thirdMsgId\":\"\(id)\",\"payload\":{\"n\":\(id)}}"
    }

    @Test("every item has its own answer, in order; a wrong one does not delay the others") func items() async {
        let submission = StubSubmission()
        let items = [Self.item(1), "7", Self.item(2, bizType: "absent"), "{\"bizType\":\"orders\"}", Self.item(3)]
        let answer = await answer("[\(items.joined(separator: ", "))]", submission: submission)
        #expect(answer.isAttempted && answer.code == .success)
        #expect(
            answer.results?.map(\.code) == [
                .success, .argsIsNull, .bizNotOnline, .thirdMessageIDIsNull, .success,
            ])
        #expect(submission.pushes.map(\.thirdMessageID.text) == ["1", "3"])
        #expect(submission.pushes.map(\.payload) == ["{\"n\":1}", "{\"n\":3}"].map { Array($0.utf8) })
        #expect(
            answer.body(requestID: "r").contains(
                #""results":[{"success":true,"msg":"SUCCESS","retryable":false,"oplogId":7},"#))
    }

    @Test("items to one target are handed on together and in order") func order() async {
        let submission = StubSubmission()
        let items = (0..<60).map { Self.item($0, to: "u\($0 % 3)") }
        _ = await answer("[\(items.joined(separator: ","))]", submission: submission)
        for target in 0..<3 {
            let ids = submission.pushes.filter { $0.linkToken == "u\(target)" }.compactMap {
                Int($0.thirdMessageID.text)
            }
            #expect(ids == ids.sorted() && ids.count == 20)
        }
    }

    @Test("no item, more than 500, or no array: ARGS_IS_NULL with a reason, and nothing is submitted") func bounds()
        async
    {
        for (count, isTaken) in [(0, false), (1, true), (500, true), (501, false)] {
            let submission = StubSubmission()
            let items = "[" + (0..<count).map { Self.item($0) }.joined(separator: ",") + "]"
            let answer = await answer(items, submission: submission)
            #expect((answer.results?.count == count) == isTaken && submission.pushes.count == (isTaken ? count : 0))
            #expect(isTaken || (answer.code == .argsIsNull && answer.detail?.contains("500") == true))
        }
        for items in ["{}", "null", "\"\"", "[1", "[{},]"] {
            #expect(await answer(items).code == .argsIsNull, "\(items)")
        }
    }
}

@Suite("Ingest: submission over the bus")
struct IngestSubmissionTests {
    private static let push = PushRequest(
        scope: .single, instanceID: InstanceID("w_app"), bizType: BizType("orders"), linkToken: "u",
        thirdMessageID: ThirdMessageID("t"), payload: [1], isBinary: true, targeting: .everyone, validUntil: nil)

    private typealias Step = Result<Mss_Bus_V1_AppendReply, BusError>

    /// The outcome of a push when the bus answers in these steps, and the number of sends.
    private func outcome(_ steps: [Step]) async -> (PushOutcome, Int) {
        let script = Mutex((steps: steps, sent: 0))
        let submission = BusSubmission { commands in
            commands.map { _ in
                let step = script.withLock { script in
                    script.sent += 1
                    return script.steps.removeFirst()
                }
                return step.map { append in .with { $0.append = append } }
            }
        }
        let outcome = await submission.submit([AcceptedPush(Self.push, by: .stub("orders", .user))])[0]
        return (outcome, script.withLock { $0.sent })
    }

    private func reply(_ outcome: Mss_Bus_V1_AppendOutcome, id: Int64 = 4, online: Bool = false) -> Step {
        var reply = Mss_Bus_V1_AppendReply()
        reply.outcome = outcome
        reply.oplogID = id
        reply.online = online
        reply.validUntilMs = .max
        reply.detail = "why"
        return .success(reply)
    }

    private func failure(_ code: BusError.Code) -> Step { .failure(BusError(code, "test")) }

    @Test("a definite reply is used at once")
    func decided() async {
        #expect(await outcome([reply(.stored, online: true)]) == (.stored(OplogID(4), online: true), 1))
        #expect(await outcome([reply(.duplicate)]) == (.duplicate(OplogID(4)), 1))
        #expect(await outcome([reply(.refused)]) == (.refused("why"), 1))
    }

    @Test("doubt is resolved by one repeat, and stays unknown after it")
    func repeated() async {
        #expect(await outcome([failure(.unanswered), reply(.duplicate)]) == (.duplicate(OplogID(4)), 2))
        #expect(await outcome([reply(.unknown), reply(.stored)]) == (.stored(OplogID(4), online: false), 2))
        #expect(await outcome([failure(.unanswered), failure(.unanswered)]) == (.unknown, 2))
        #expect(await outcome([failure(.unanswered), failure(.unavailable)]) == (.unknown, 2))
        #expect(await outcome([failure(.failed(notAttempted: false)), failure(.unavailable)]) == (.unknown, 2))
    }

    @Test("an unsent push is not attempted; a push that a writer refuses is sent again")
    func notAttempted() async {
        #expect(await outcome([failure(.unavailable)]) == (.notAttempted, 1))
        let refused = failure(.failed(notAttempted: true))
        #expect(await outcome([refused, refused]) == (.unknown, 2))
        #expect(await outcome([refused, failure(.unanswered)]) == (.unknown, 2))
    }

    @Test("the command carries the push as its configuration wants it")
    func command() {
        let single = BusSubmission.command(AcceptedPush(Self.push, by: .stub("orders", .user)))
        #expect(single.target.target == "u" && single.target.instanceID == "w_app" && single.bizType == "orders")
        #expect(single.oplog.binary)
        #expect(single.oplog.validUntilMs == 0 && single.oplog.thirdMessageID == "t")
        let global = BusSubmission.command(AcceptedPush(Self.push, by: .stub("news", .globalUser)))
        #expect(global.target.target == "" && global.target.kind == .globalUser)
    }
}

/// Answers every push with exactly this outcome, including the validity. `StubSubmission` computes the validity from
/// the push.
struct FixedSubmission: PushSubmitting {
    private let outcome: PushOutcome

    init(_ outcome: PushOutcome) { self.outcome = outcome }

    func submit(_ pushes: [AcceptedPush]) async -> [PushOutcome] {
        pushes.map { _ in outcome }
    }
}

/// Holds every push until it is released.
final class HeldSubmission: PushSubmitting {
    private struct State {
        var held: [CheckedContinuation<Void, Never>] = []
        var isReleased = false
        var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?
    }

    private let state = Mutex(State())

    func submit(_ pushes: [AcceptedPush]) async -> [PushOutcome] {
        await withCheckedContinuation { continuation in
            let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
                if state.isReleased {
                    continuation.resume()
                    return nil
                }
                state.held.append(continuation)
                return state.held.count == state.waiter?.count ? state.waiter?.continuation : nil
            }
            waiter?.resume()
        }
        return pushes.map { _ in .stored(OplogID(1), online: true) }
    }

    /// Returns when that many pushes are held.
    func waitUntilHeld(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isHeld = state.withLock { state in
                if state.held.count >= count { return true }
                state.waiter = (count, continuation)
                return false
            }
            if isHeld { continuation.resume() }
        }
    }

    func release() {
        let held = state.withLock { state in
            state.isReleased = true
            defer { state.held = [] }
            return state.held
        }
        for continuation in held { continuation.resume() }
    }
}
