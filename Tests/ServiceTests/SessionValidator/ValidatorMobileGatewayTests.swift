import Credentials
import Crypto
import Foundation
import ServiceKit
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import ControlTool
@testable import SessionValidator
@testable import TenantCalls

@Suite("Mobile gateways and signatures", .timeLimit(.minutes(5)))
struct ValidatorMobileGatewayTests {
    private static let failed = CheckOutcome.unknown("the mobile gateway says that the call failed")

    /// Requests verdicts on two sessions through the gateway. A nil value means: the gateway did not make the call.
    private func ask(
        _ gateway: MobileGatewayStandIn, as form: ValidatorForm.MobileGateway, secret: String? = nil
    ) async throws -> [CheckOutcome] {
        let outcomes = Mutex<[CheckOutcome]>([])
        try await gateway.serve { url in
            let place = try #require(url.split(separator: "/").dropFirst().first)
            let endpoint = try SessionEndpoint(
                limit: .seconds(10), connectLimit: .seconds(10),
                policy: CalloutPolicy(
                    allowed: ["http://\(place)"].compactMap { AllowedCallout($0) }, allowsLoopback: true))
            for session in ["good", "bad"] {
                let outcome = await endpoint.check(
                    url, as: .mobileGateway(form), instanceID: InstanceID("i"), userID: UserID("u"),
                    sessionID: session, signer: secret.map(Self.signer))
                outcomes.withLock { $0.append(outcome) }
            }
            endpoint.close()
        }
        return outcomes.withLock { $0 }
    }

    @Test(
        "V2: a mobile gateway accepts our call in both body forms, signed and not, and its verdict counts",
        arguments: [false, true], [nil, "the app's secret"])
    func taken(wrapsBody: Bool, secret: String?) async throws {
        let outcomes = try await ask(
            MobileGatewayStandIn(wrapsBody: wrapsBody, secret: secret),
            as: .init(appID: "APP", workspaceID: "space", wrapsBody: wrapsBody), secret: secret)
        #expect(outcomes == [.valid, .invalid("the session is not valid")])
    }

    @Test("V2: an unrequested signature does no harm at the gateway")
    func signedForNothing() async throws {
        let outcomes = try await ask(
            MobileGatewayStandIn(), as: .init(appID: "APP", workspaceID: "space"), secret: "secret")
        #expect(outcomes == [.valid, .invalid("the session is not valid")])
    }

    @Test(
        "V2: a call that the gateway refuses is unknown",
        arguments: [
            (ValidatorForm.MobileGateway(appID: "OTHER", workspaceID: "space"), String?("secret")),
            (ValidatorForm.MobileGateway(appID: "APP", workspaceID: "other"), "secret"),
            (ValidatorForm.MobileGateway(appID: "APP", workspaceID: "space", wrapsBody: true), "secret"),
            (ValidatorForm.MobileGateway(appID: "APP", workspaceID: "space"), "another secret"),
            (ValidatorForm.MobileGateway(appID: "APP", workspaceID: "space"), nil),
        ])
    func refused(_ row: (form: ValidatorForm.MobileGateway, secret: String?)) async throws {
        let outcomes = try await ask(MobileGatewayStandIn(secret: "secret"), as: row.form, secret: row.secret)
        #expect(outcomes == [Self.failed, Self.failed])
    }

    @Test("V2: the signature is the vendor's: MD5 of operation, body and time with the secret behind")
    func signature() {
        let form = ValidatorForm.MobileGateway(appID: "APP", workspaceID: "space")
        let time = WallTime(milliseconds: 1_700_000_000_000)
        let signed = MobileGatewayRequest(
            Data(#"{"a":1}"#.utf8), through: form, secret: SymmetricKey(data: Data("secret".utf8)), at: time)
        let fields = Dictionary(uniqueKeysWithValues: signed.headers)
        #expect(fields["Ts"] == "OlFvMW0" && fields["signType"] == "0")
        #expect(fields["Sign"] == "eddffef4fc2226eb638507fb63dc7889")
        let plain = MobileGatewayRequest(Data(#"{"a":1}"#.utf8), through: form, at: time)
        #expect(plain.headers.count == 5 && plain.body == signed.body)
    }

    @Test("V2: a secret signs with its bytes, text or not")
    func secretBytes() {
        let form = ValidatorForm.MobileGateway(appID: "APP", workspaceID: "space")
        let time = WallTime(milliseconds: 1_700_000_000_000)
        let signs = [[UInt8]([0xff, 0x00]), [0xfe, 0x00]].map { secret in
            let signed = MobileGatewayRequest(
                Data(#"{"a":1}"#.utf8), through: form, secret: SymmetricKey(data: secret), at: time)
            let text =
                "Operation-Type=com.antcloud.session.validate&Request-Data=\(signed.body.base64EncodedString())"
                + "&Ts=OlFvMW0"
            let wanted = Insecure.MD5.hash(data: Data(text.utf8) + secret).map { String(format: "%02x", $0) }.joined()
            let sign = Dictionary(uniqueKeysWithValues: signed.headers)["Sign"]
            #expect(sign == wanted)
            return sign
        }
        #expect(signs[0] != signs[1])
    }

    @Test("V2: the tool refuses a mobile gateway's secret that is not in Base64")
    func secretOfTheTool() throws {
        let form = ValidatorForm.mobileGateway(.init(appID: "APP", workspaceID: "space"))
        // The secret is also valid Base64, of bytes that are not text.
        let plain = try #require(Data(base64Encoded: "f3a9d07c5e8841b2"))
        #expect(KeyCommand.fault(of: plain, signing: form)?.contains("Base64") == true)
        #expect(KeyCommand.fault(of: plain, signing: .http) == nil)
        #expect(KeyCommand.fault(of: Data("f3a9d07c5e8841b2".utf8), signing: form) == nil)
    }

    private static func signer(_ secret: String) -> RequestSigner {
        RequestSigner(keyID: "k", secret: SymmetricKey(data: Data(secret.utf8)))
    }

    @Test("SEC12: our calls are signed like backends' calls, so that a tenant can recognise them")
    func calloutSignature() {
        let signer = RequestSigner(keyID: "demo_app", secret: SymmetricKey(data: Data("secret".utf8)))
        let headers = signer.headers(
            method: "POST", target: "/check?x=1", body: Data(#"{"a":1}"#.utf8),
            at: WallTime(milliseconds: 1_700_000_000_000),
            nonce: [
                0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff,
            ])
        let fields = Dictionary(uniqueKeysWithValues: headers)
        #expect(
            fields == [
                "X-MSS-Key": "demo_app", "X-MSS-Timestamp": "1700000000000",
                "X-MSS-Nonce": "00112233445566778899aabbccddeeff",
                "X-MSS-Signature": "bdc4efe5060bcffb3a9a6735a538e2f0515bfe7f262ae1bafaa845afd0485ce4",
            ])
    }

    /// Whether a request has the correct signature of its first line, body, time and nonce.
    private static func isSigned(_ question: String, by secret: String) throws -> Bool {
        let end = try #require(question.range(of: "\r\n\r\n"))
        let lines = question[..<end.lowerBound].components(separatedBy: "\r\n")
        let fields = Dictionary(
            lines.dropFirst().map { $0.components(separatedBy: ": ") }.map { ($0[0], $0.dropFirst().joined()) }
        ) { $0 + $1 }
        let line = lines[0].components(separatedBy: " ")
        let values = RequestSignature.headerNames.map { fields[$0] ?? "" }
        let milliseconds = try #require(Int64(values[1]))
        let signature = RequestSignature(
            method: line[0], target: line[1], body: Data(question[end.upperBound...].utf8), timestamp: values[1],
            nonce: values[2], keyID: values[0])
        let code = try #require(HexText.bytes(of: values[3]))
        return signature.isValid(code, with: SymmetricKey(data: Data(secret.utf8)))
            && abs(milliseconds - WallTime.now.milliseconds) < 300_000
    }

    @Test("SEC12: a signed call carries its own signature, each with a nonce of its own, and an unsigned one none")
    func signedCall() async throws {
        var nonces: Set<Substring> = []
        for secret in ["secret", "secret", nil] {
            let tenant = try FakeTenant(answer: FakeTenant.valid, keepsOpen: false)
            let endpoint = try SessionEndpoint(
                limit: .seconds(10), connectLimit: .seconds(10),
                policy: CalloutPolicy(
                    allowed: ["http://127.0.0.1:\(tenant.port)"].compactMap { AllowedCallout($0) },
                    allowsLoopback: true))
            let outcome = await endpoint.check(
                "http://127.0.0.1:\(tenant.port)/check?b=2&a=1", instanceID: InstanceID("i"), userID: UserID("u"),
                sessionID: "s1", signer: secret.map(Self.signer))
            #expect(outcome == .valid)
            endpoint.close()
            let question = tenant.stop()
            let nonce = question.firstMatch(of: /\r\nX-MSS-Nonce: ([0-9a-f]{32})\r\n/)?.1
            #expect((nonce != nil) == (secret != nil))
            #expect(question.contains("X-MSS-Signature: ") == (secret != nil))
            if let nonce { nonces.insert(nonce) }
            if let secret { #expect(try Self.isSigned(question, by: secret)) }
        }
        #expect(nonces.count == 2)
    }
}
