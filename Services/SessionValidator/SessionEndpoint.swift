import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import TenantCalls

/// Calls a tenant to check one session over HTTP, directly or through a mobile gateway (V2), and only at an address
/// that an operator allows (V7).
struct SessionEndpoint: Sendable {
    /// The members of the request body.
    private struct RequestBody: Encodable {
        let instanceId: String
        let userId: String
        let sessionId: String
    }

    /// Status codes with which a proxy or the service reports itself unavailable.
    private static let absences: [HTTPResponseStatus] = [
        .tooManyRequests, .badGateway, .serviceUnavailable, .gatewayTimeout,
    ]

    private let caller: TenantCaller

    /// - Parameters:
    ///   - limit: for the whole call, from the DNS lookup to the last byte of the response.
    ///   - connectLimit: for the TCP connection and the TLS handshake, as a part of `limit` (SEC12).
    ///   - authorityFile: PEM of the certificate authorities of tenants; nil: the system's.
    /// - Throws: when the file cannot be read.
    init(
        limit: Duration, connectLimit: Duration = .seconds(1), policy: CalloutPolicy, authorityFile: String? = nil,
        resolver: any HostResolving = SystemResolver()
    ) throws {
        caller = try TenantCaller(
            limit: limit, connectLimit: connectLimit, bodyMax: TenantAnswer.bytesMax, policy: policy,
            authorityFile: authorityFile, resolver: resolver)
    }

    /// Throws if the URL may not be called. The addresses of its host are checked with each call.
    func permit(_ url: String) throws(CalloutRefusal) { _ = try caller.url(url) }

    /// Calls the tenant. Takes no longer than the limit.
    ///
    /// - Parameter signer: nil: the call is not signed.
    func check(
        _ url: String, as form: ValidatorForm = .http, instanceID: InstanceID, userID: UserID, sessionID: String,
        signer: RequestSigner? = nil
    ) async -> CheckOutcome {
        let content = RequestBody(instanceId: instanceID.text, userId: userID.text, sessionId: sessionID)
        guard var body = try? JSONEncoder().encode(content) else { return .unknown("the question is no JSON") }
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
                let wrapped = MobileGatewayRequest(body, through: gateway, secret: signer?.secret, at: .now)
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

    /// Closes the connections. No call may follow.
    func close() { caller.close() }

    private static func outcome(
        of answer: TenantResponse, as form: ValidatorForm, sessionID: String
    ) -> CheckOutcome {
        guard answer.status == .ok else {
            let reason = "the tenant answered with status \(answer.status.code)"
            return Self.absences.contains(answer.status) ? .noAnswer(reason) : .unknown(reason)
        }
        if form != .http {
            // The mobile gateway responds with 200 even if the tenant's service failed.
            let result = answer.headers.first(name: MobileGatewayRequest.resultStatus.name)
            guard result == MobileGatewayRequest.resultStatus.good else {
                return .unknown("the mobile gateway says that the call failed")
            }
        }
        return TenantAnswer.outcome(of: answer.body, sessionID: sessionID)
    }
}

/// The outcome of one call of a tenant.
enum CheckOutcome: Hashable, Sendable {
    case valid
    /// The reason is for the device's app. It contains no session id.
    case invalid(String)
    /// The response gives no verdict. Data is withheld, and the gateway requests a verdict again (V4).
    case unknown(String)
    /// No response: no connection, a time-out, or a server that reports itself unavailable. The verdict is unknown as
    /// well.
    case noAnswer(String)

    /// Whether the tenant's endpoint responded; its circuit breaker counts only that. A response without a verdict
    /// counts as one. Otherwise an attacker could invent sessions that the tenant answers with an error, and so stop
    /// the calls about the sessions of other users.
    var isAnswer: Bool {
        if case .noAnswer = self { return false }
        return true
    }
}
