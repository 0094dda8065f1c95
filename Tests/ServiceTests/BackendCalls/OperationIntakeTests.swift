import BusMessages
import Foundation
import NIOHTTP1
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: trace, dry run, recall")
struct OperationIntakeTests {
    private func query(_ text: String) -> (String) -> String? {
        let query = RequestQuery(
            HTTPRequestHead(version: .http1_1, method: .GET, uri: "/webapi/sync/trace?\(text)"))
        return { query[$0] }
    }

    private func members(_ answer: APIAnswer) throws -> [String: Any] {
        let data = Data(answer.body(requestID: "r").utf8)
        return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    }

    private static func reply(_ states: [DeliveryState], base: DeliveryState = .notConnected) -> Mss_Bus_V1_Reply {
        .with {
            $0.trace.channelID = 1
            $0.trace.oplog.id = 9
            $0.trace.oplog.thirdMessageID = "t"
            $0.trace.oplog.createdAtMs = 1_000
            $0.trace.state = Int32(base.rawValue)
            $0.trace.receivers = states.enumerated().map { index, state in
                .with {
                    $0.deviceID = "d\(index)"
                    $0.state = Int32(state.rawValue)
                    $0.handedOutAtMs = 1_700_000_000_123
                    $0.attempts = 3
                }
            }
        }
    }

    @Test("a trace names the oplog as the call did; the store decides whether a linkToken matters")
    func names() async {
        let asked = [
            "instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=t": ("u", "t", Int64(0)),
            "instanceId=w_app&bizType=news&linkToken=former&oplogId=7": ("former", "", 7),
            "instanceId=w_app&bizType=orders&oplogId=7": ("", "", 7),
            "instanceId=w_app&bizType=deleted&linkToken=u%2B1&thirdMsgId=t": ("u+1", "t", 0),
        ]
        for (text, expected) in asked {
            let intake = OperationIntake.stub { command in
                let name = command.trace.oplog
                let matches = (name.linkToken, name.thirdMessageID, name.oplogID) == expected
                return .success(matches ? Self.reply([.delivered]) : .init())
            }
            #expect(await intake.trace(query(text)).code == .success, "\(text)")
        }
    }

    @Test(
        "a trace without an oplog is refused with an explanation",
        arguments: [
            ("bizType=orders&linkToken=u&thirdMsgId=t", ResultCode.argsIsNull),
            ("instanceId=w_app&linkToken=u&thirdMsgId=t", .argsIsNull),
            ("instanceId=w_app&bizType=orders&thirdMsgId=t", .argsIsNull),
            ("instanceId=w_app&bizType=orders&linkToken=u", .thirdMessageIDIsNull),
            ("instanceId=w_app&bizType=orders&linkToken=u&oplogId=x", .argsIsNull),
            ("instanceId=w_app&bizType=orders&linkToken=%00&oplogId=1", .argsIsNull),
            ("instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=%00", .argsIsNull),
            ("instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=t&deviceId=%00", .argsIsNull),
            (
                "instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=t&deviceId="
                    + String(repeating: "d", count: 101), .argsIsNull
            ),
        ])
    func refusedNames(text: String, code: ResultCode) async {
        let answer = await OperationIntake.stub().trace(query(text))
        #expect(answer.code == code && answer.detail?.isEmpty == false)
    }

    @Test("a missing oplog, and a store that is unavailable")
    func absent() async {
        let text = "instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=t"
        let absent = await OperationIntake.stub().trace(query(text))
        #expect(absent.code == .argsIsNull && absent.detail?.contains("no such oplog") == true)
        let away = await OperationIntake.stub { _ in .failure(BusError(.unanswered, "test")) }.trace(query(text))
        #expect(!away.isAttempted && away.retryAfterSeconds != nil)
    }

    @Test("a trace has the state of each device with times and counts, and the most advanced state of all")
    func trace() async throws {
        let intake = OperationIntake.stub { _ in .success(Self.reply([.notConnected, .handedOut, .expired])) }
        let answer = await intake.trace(query("instanceId=w_app&bizType=orders&linkToken=u&thirdMsgId=t"))
        let members = try members(answer)
        #expect(members["state"] as? String == "HANDED_OUT" && members["oplogId"] as? Int == 9)
        #expect(members["acceptedAt"] as? Int == 1_000 && members["recalledAt"] == nil)
        let receivers = try #require(members["receivers"] as? [[String: Any]])
        #expect(receivers.map { $0["state"] as? String } == ["NOT_CONNECTED", "HANDED_OUT", "EXPIRED"])
        let words = try #require(receivers[1]["detail"] as? String)
        #expect(words.contains("2023-11-14T22:13:20.123Z") && words.contains("3 times"))
    }

    @Test("a dry run answers as the push would, and stores nothing")
    func dryRun() async throws {
        let body = Array(#"{"bizType":"orders","linkToken":"u","thirdMsgId":"t","payload":"p"}"#.utf8)
        for (states, code) in [([DeliveryState.onItsWay, .notOwner], ResultCode.success), ([.notOwner], .notOnline)] {
            let submission = StubSubmission()
            let operations = OperationIntake.stub { command in
                command.dryRun.oplog.thirdMessageID == "t" ? .success(Self.reply(states)) : .success(.init())
            }
            let intake = PushIntake(
                directory: StubDirectory(), submission: submission, operations: operations,
                inFlightMaximum: 1)
            let answer = await intake.answer(scope: .single, instanceID: "w_app", body: body, isDryRun: true)
            #expect(answer.code == code)
            #expect(try members(answer)["dryRun"] as? Bool == true)
            let batch = Array(#"{"items":[\#(String(decoding: body, as: UTF8.self))]}"#.utf8)
            let answers = await intake.answerBatch(instanceID: "w_app", body: batch, isDryRun: true)
            #expect(answers.results?.map(\.code) == [code] && answers.results?.first?.trace?.isDryRun == true)
            #expect(submission.pushes.isEmpty)
        }
    }

    @Test("a dry run of a key that is known answers DUPLICATED_BIZ_ID with the first id")
    func dryRunOfDuplicate() async {
        let operations = OperationIntake.stub { _ in
            .success(
                .with {
                    $0.trace.duplicate = true
                    $0.trace.oplog.id = 5
                })
        }
        let push = PushRequest(
            scope: .single, instanceID: InstanceID("w_app"), bizType: BizType("orders"), linkToken: "u",
            thirdMessageID: ThirdMessageID("t"), payload: [], isBinary: false, targeting: .everyone)
        let answer = await operations.dryRun(push, .stub("orders", .user))
        #expect(answer.code == .duplicatedBizID && answer.oplogID == OplogID(5))
    }

    @Test("a recall is certain, uncertain, or has no push")
    func recall() async {
        func answer(
            _ body: String, _ result: Result<Mss_Bus_V1_Reply, BusError> = .success(.init())
        ) async -> APIAnswer {
            await OperationIntake.stub { _ in result }.recall(instanceID: "w_app", body: Array(body.utf8))
        }
        func recalled(uncertain: Bool) -> Result<Mss_Bus_V1_Reply, BusError> {
            .success(
                .with {
                    $0.recall.oplogID = 4
                    $0.recall.uncertain = uncertain
                })
        }
        let body = #"{"bizType":"orders","linkToken":"u","thirdMsgId":"t"}"#
        #expect(await answer(body, recalled(uncertain: false)).code == .success)
        #expect(await answer(body, recalled(uncertain: true)).code == .systemError)
        #expect(await answer(body).code == .argsIsNull)
        #expect(await answer(body, .failure(BusError(.unanswered, ""))).code == .systemError)
        #expect(await !answer(body, .failure(BusError(.unavailable, ""))).isAttempted)
        #expect(await answer("{").code == .argsIsNull)
        #expect(await answer(#"{"bizType":"orders","linkToken":"u"}"#).code == .thirdMessageIDIsNull)
        #expect(await answer(#"{"bizType":"none","linkToken":"u","thirdMsgId":"t"}"#).code == .bizNotOnline)
        #expect(await answer(#"{"bizType":"orders","linkToken":1,"thirdMsgId":"t"}"#).code == .argsIsNull)
        #expect(
            await answer(#"{"bizType":"offline","linkToken":"u","thirdMsgId":"t"}"#, recalled(uncertain: false)).code
                == .success)
    }

    @Test("D17: before a recall or a revocation is refused, newer control data is requested, and decides")
    func newer() async {
        var directory = StubDirectory()
        directory.later = StubDirectory.Later(.stub("absent", .user))
        let recall = OperationIntake.stub(directory: directory) { _ in .success(.with { $0.recall.oplogID = 4 }) }
        let body = Array(#"{"bizType":"absent","linkToken":"u","thirdMsgId":"t"}"#.utf8)
        #expect(await recall.recall(instanceID: "w_app", body: body).code == .success)
        let added = Instance(
            id: InstanceID("w_new"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(60))
        directory.later = StubDirectory.Later(instance: added)
        let revoke = OperationIntake.stub(directory: directory) { _ in .success(.with { $0.revoke = .init() }) }
        let user = Array(#"{"userId":"u"}"#.utf8)
        #expect(await revoke.revoke(instanceID: "w_new", body: user).code == .unavailable, "it must be admitted again")
        #expect(await revoke.revoke(instanceID: "w_new", body: user).code == .success)
    }
}
