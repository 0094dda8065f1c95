import BusMessages
import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: revoke")
struct RevocationIntakeTests {
    private func answer(
        _ body: String, instance: String? = "w_app",
        _ reply: @escaping @Sendable (Mss_Bus_V1_OperationCommand) -> Result<Mss_Bus_V1_Reply, BusError> = { _ in
            .success(.with { $0.revoke = .init() })
        }
    ) async -> APIAnswer {
        await OperationIntake.stub(reply).revoke(instanceID: instance, body: Array(body.utf8))
    }

    @Test("H7: the command has the session's digest; without a session it means all of the user")
    func digests() async {
        for (body, digest) in [
            (#"{"userId":"u","sessionId":"s"}"#, Data(SessionDigest.of("s"))), (#"{"userId":"u"}"#, Data()),
            (#"{"userId":"u","sessionId":null}"#, Data()),
        ] {
            let given = await answer(body) { command in
                let sessions = command.revokeSessions
                let isRight =
                    sessions.instanceID == "w_app" && sessions.userID == "u" && sessions.sessionDigest == digest
                return .success(.with { $0.revoke.uncertain = !isRight })
            }
            #expect(given.code == .success, "\(body)")
        }
    }

    @Test("H7: a missing user, an unknown instance and an uncertain revocation have their answers")
    func refusals() async {
        let long = String(repeating: "u", count: 101)
        for body in [
            "", "{}", #"{"userId":""}"#, #"{"userId":7}"#, #"{"userId":"u\u0000"}"#, #"{"userId":"\#(long)"}"#,
            #"{"userId":"u","sessionId":""}"#, #"{"userId":"u","sessionId":7}"#,
            #"{"userId":"u","sessionId":"\#(String(repeating: "s", count: 4_097))"}"#,
        ] {
            let refused = await answer(body)
            #expect(refused.code == .argsIsNull && refused.detail?.isEmpty == false, "\(body.prefix(40))")
        }
        #expect(await answer("{}").detail?.contains("userId") == true)
        let body = #"{"userId":"u"}"#
        #expect(await answer(body, instance: nil).code == .argsIsNull)
        #expect(await answer(body, instance: "nobody").code == .bizNotOnline)
        let doubt = await answer(body) { _ in .success(.with { $0.revoke.uncertain = true }) }
        #expect(doubt.code == .systemError && doubt.isAttempted)
        let silence = await answer(body) { _ in .failure(BusError(.unanswered, "")) }
        #expect(silence.code == .systemError && silence.isAttempted)
        let absence = await answer(body) { _ in .failure(BusError(.unavailable, "")) }
        #expect(!absence.isAttempted && absence.retryAfterSeconds != nil)
    }
}
