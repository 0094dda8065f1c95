import BusMessages
import Foundation
import SyncModel
import TestSupport
import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("Session endpoints", .timeLimit(.minutes(5)))
struct ValidatorEndpointTests {
    /// An endpoint that may call one port of this machine.
    private func endpoint(port: Int, limit: Duration = .seconds(10)) throws -> SessionEndpoint {
        try SessionEndpoint(
            limit: limit, connectLimit: limit,
            policy: CalloutPolicy(
                allowed: ["http://127.0.0.1:\(port)"].compactMap { AllowedCallout($0) }, allowsLoopback: true))
    }

    private func outcome(
        of answer: String, as form: ValidatorForm = .http, keepsOpen: Bool = false, limit: Duration = .seconds(10)
    ) async throws -> (CheckOutcome, question: String) {
        let tenant = try FakeTenant(answer: answer, keepsOpen: keepsOpen)
        let endpoint = try endpoint(port: tenant.port, limit: limit)
        let outcome = await endpoint.check(
            "http://127.0.0.1:\(tenant.port)/check", as: form, instanceID: InstanceID("a_b"), userID: UserID("ü\""),
            sessionID: "s1")
        endpoint.close()
        return (outcome, tenant.stop())
    }

    private func answer(_ status: String, _ body: String, _ headers: String = "") -> String {
        "HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\(headers)\r\n\(body)"
    }

    @Test("V2: the request is a POST of the three members as JSON, and its response counts")
    func asked() async throws {
        let (outcome, question) = try await outcome(
            of: answer("200 OK", #"{"success":true,"result":{"valid":true,"sid":"s1"}}"#))
        #expect(outcome == .valid)
        #expect(question.hasPrefix("POST /check HTTP/1.1\r\n"))
        #expect(question.lowercased().contains("content-type: application/json\r\n"))
        for member in [#""instanceId":"a_b""#, #""userId":"ü\"""#, #""sessionId":"s1""#] {
            #expect(question.contains(member))
        }
    }

    @Test(
        "V2: through a mobile gateway: its headers, its body forms, and only Result-Status 1000 is an answer",
        arguments: [false, true])
    func mobileGateway(wrapsBody: Bool) async throws {
        let form = ValidatorForm.mobileGateway(.init(appID: "APP", workspaceID: "space", wrapsBody: wrapsBody))
        let body = #"{"resultCode":"OK","success":true,"result":"{\"valid\":true,\"sid\":\"s1\"}"}"#
        let (good, question) = try await outcome(of: answer("200 OK", body, "Result-Status: 1000\r\n"), as: form)
        #expect(good == .valid)
        let fields = question.lowercased()
        for field in [
            "operation-type: com.antcloud.session.validate", "appid: app", "workspaceid: space", "version: 2",
        ] {
            #expect(fields.contains("\r\n\(field)\r\n"))
        }
        let time = try #require(question.firstMatch(of: /\r\nTs: ([0-9A-Za-z+\/]{7})\r\n/))
        #expect(!time.1.isEmpty)
        let sent = String(question[try #require(question.range(of: "\r\n\r\n")).upperBound...])
        #expect(sent.hasPrefix(wrapsBody ? #"[{"_requestBody":{"# : "[{") && sent.hasSuffix(wrapsBody ? "}}]" : "}]"))
        for headers in ["", "Result-Status: 1001\r\n", "Result-Status: \r\n"] {
            let (bad, _) = try await outcome(of: answer("200 OK", body, headers), as: form)
            #expect(bad == .unknown("the mobile gateway says that the call failed"))
        }
    }

    @Test("V2: the time of a mobile gateway's call is a number in base 64")
    func base64Numbers() {
        #expect(MobileGatewayRequest.base64Number(0) == "0")
        #expect(MobileGatewayRequest.base64Number(63) == "/")
        #expect(MobileGatewayRequest.base64Number(64) == "10")
        #expect(MobileGatewayRequest.base64Number(1_700_000_000_000) == "OlFvMW0")
    }

    @Test(
        "SEC12, V7: redirects are not followed, and other statuses are unknown",
        arguments: ["302 Found", "307 Temporary Redirect", "500 Oops", "204 No Content"])
    func status(_ status: String) async throws {
        let body = status.hasPrefix("204") ? "" : #"{"success":true,"result":{"valid":true}}"#
        let (outcome, _) = try await outcome(of: answer(status, body, "Location: http://127.0.0.1:1/\r\n"))
        #expect(outcome == .unknown("the tenant answered with status \(status.prefix(3))"))
    }

    @Test(
        "V5: an unusable response still counts as one for the breaker; a server that is down gave none",
        arguments: [
            ("200 OK", #"{"success":false}"#, true), ("200 OK", "<html>", true), ("400 Bad Request", "", true),
            ("404 Not Found", "", true), ("500 Oops", "{}", true), ("302 Found", "", true),
            ("500 Oops", String(repeating: "x", count: 20_000), true), ("429 Too Many Requests", "", false),
            ("502 Bad Gateway", "", false), ("503 Service Unavailable", "", false), ("504 Gateway Timeout", "", false),
        ])
    func countsAsAnswer(_ row: (status: String, body: String, isAnswer: Bool)) async throws {
        let (outcome, _) = try await outcome(of: answer(row.status, row.body))
        #expect(outcome.isAnswer == row.isAnswer)
        #expect(Mss_Bus_V1_ValidateReply(outcome, joinedAfter: .zero).verdict == .unknown)
    }

    @Test("SEC12, V7: an answer that is too long is unknown")
    func tooLong() async throws {
        let body = #"{"success":true,"result":{"valid":true}}"# + String(repeating: " ", count: 20_000)
        let (outcome, _) = try await outcome(of: answer("200 OK", body))
        #expect(outcome == .unknown("\(CalloutError.tooLong)"))
    }

    @Test(
        "V4: an answer that never comes, or never ends, is unknown at the limit",
        arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"success\":"])
    func silent(_ begun: String) async throws {
        // Without the time limit, the call would wait until the suite's limit.
        let (outcome, _) = try await outcome(of: begun, keepsOpen: true, limit: .milliseconds(500))
        #expect(!outcome.isAnswer)
    }

    @Test("V4: a missing tenant is unknown")
    func absent() async throws {
        let port = try FreePorts.find(1)[0]
        let endpoint = try endpoint(port: port)
        let outcome = await endpoint.check(
            "http://127.0.0.1:\(port)/", instanceID: InstanceID("a"), userID: UserID("u"), sessionID: "secret")
        endpoint.close()
        guard case .noAnswer(let reason) = outcome else { throw Failure("\(outcome)") }
        #expect(!reason.contains("secret"))
    }

    @Test("V5: a reply says how long before or after the request the call began, never as later than it was")
    func replies() {
        let own = Mss_Bus_V1_ValidateReply(.valid, joinedAfter: .milliseconds(-3))
        #expect(own.verdict == .valid && own.joinedAfterMs == -3 && own.reason.isEmpty)
        let later = Mss_Bus_V1_ValidateReply(.valid, joinedAfter: .microseconds(-1_500_999))
        #expect(later.joinedAfterMs == -1_500, "the call did not start later than said")
        let joined = Mss_Bus_V1_ValidateReply(.invalid("gone"), joinedAfter: .microseconds(1_500_001))
        #expect(joined.verdict == .invalid && joined.joinedAfterMs == 1_501 && joined.reason == "gone")
        let unknown = Mss_Bus_V1_ValidateReply(.unknown("why"), joinedAfter: .zero)
        #expect(unknown.verdict == .unknown && unknown.joinedAfterMs == 0 && unknown.reason == "why")
    }
}
