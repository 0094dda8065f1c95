import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import TenantCalls

/// Asks a tenant about one session over HTTP, directly or through a mobile gateway (spec V2), and only where an
/// operator allows it (spec V7).
struct SessionEndpoint: Sendable {
    /// The members of the question, as tenants know them.
    private struct Question: Encodable {
        let instanceId: String
        let userId: String
        let sessionId: String
    }

    /// States by which a proxy, or the service itself, says that it does not answer now.
    private static let absences: [HTTPResponseStatus] = [
        .tooManyRequests, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    private let caller: TenantCaller

    /// - Parameters:
    ///   - limit: for the whole call, from the name's lookup to the answer's last byte.
    ///   - connectLimit: of that, to connect and to shake hands (reliability SEC12).
    ///   - authorityFile: PEM of the authorities that sign tenants' certificates; nil: the system's.
    /// - Throws: when the file cannot be read.
    init(
        limit: Duration, connectLimit: Duration = .seconds(1), policy: CalloutPolicy, authorityFile: String? = nil,
        resolver: any HostResolving = SystemResolver()
    ) throws {
        caller = try TenantCaller(
            limit: limit, connectLimit: connectLimit, bodyMax: TenantAnswer.bytesMax, policy: policy,
            authorityFile: authorityFile, resolver: resolver)
    }

    /// Whether the URL may be called as it is written; what its host resolves to is checked with each call.
    func permit(_ url: String) throws(CalloutRefusal) { _ = try caller.url(url) }

    /// The tenant's answer, or why there is none; never longer than the limit.
    ///
    /// - Parameter signer: nil: the call is not signed.
    func check(
        _ url: String, as form: ValidatorForm = .http, instanceID: InstanceID, userID: UserID, sessionID: String,
        signer: RequestSigner? = nil
    ) async -> CheckOutcome {
        let question = Question(instanceId: instanceID.text, userId: userID.text, sessionId: sessionID)
        guard var body = try? JSONEncoder().encode(question) else { return .unknown("the question is no JSON") }
        do {
            let url = try caller.url(url)
            var fields = HTTPHeaders()
            switch form {
            case .http:
                if let signer {
                    let signed = signer.headers(method: "POST", target: url.requestTarget, body: body, at: .now)
                    fields.add(contentsOf: HTTPHeaders(signed))
                }
            case .mobileGateway(let gateway):
                let wrapped = MobileGatewayQuestion(body, through: gateway, secret: signer?.secret, at: .now)
                fields.add(contentsOf: HTTPHeaders(wrapped.headers))
                body = wrapped.body
            }
            let answer = try await caller.post(body, to: url, fields: fields, of: instanceID)
            return Self.outcome(of: answer, as: form, sessionID: sessionID)
        } catch let refusal as CalloutRefusal {
            return .noAnswer("not called: \(refusal)")
        } catch CalloutError.tooLong {
            return .unknown("\(CalloutError.tooLong)")
        } catch {
            // Errors of the connection name addresses and states, never headers or bodies.
            return .noAnswer("the call failed: \(error)")
        }
    }

    /// Ends the connections; nothing may be asked afterwards.
    func close() { caller.close() }

    private static func outcome(
        of answer: TenantResponse, as form: ValidatorForm, sessionID: String
    ) -> CheckOutcome {
        guard answer.status == .ok else {
            let reason = "the tenant answered with status \(answer.status.code)"
            return Self.absences.contains(answer.status) ? .noAnswer(reason) : .unknown(reason)
        }
        if form != .http {
            // The gateway answers 200 also when the tenant's service failed behind it.
            let result = answer.headers.first(name: MobileGatewayQuestion.resultStatus.name)
            guard result == MobileGatewayQuestion.resultStatus.good else {
                return .unknown("the mobile gateway says that the call failed")
            }
        }
        return TenantAnswer.outcome(of: answer.body, sessionID: sessionID)
    }
}
