import Credentials
import Foundation
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel

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

    private let limit: Duration
    private let policy: CalloutPolicy
    private let resolver: any HostResolving
    private let connections: TenantConnections

    /// - Parameters:
    ///   - limit: for the whole call, from the name's lookup to the answer's last byte.
    ///   - connectLimit: of that, to connect and to shake hands (reliability SEC12).
    ///   - authorityFile: PEM of the authorities that sign tenants' certificates; nil: the system's.
    /// - Throws: when the file cannot be read.
    init(
        limit: Duration, connectLimit: Duration = .seconds(1), policy: CalloutPolicy, authorityFile: String? = nil,
        resolver: any HostResolving = SystemResolver()
    ) throws {
        self.limit = limit
        self.policy = policy
        self.resolver = resolver
        connections = try TenantConnections(connectLimit: connectLimit, authorityFile: authorityFile)
    }

    /// Whether the URL may be called as it is written; what its host resolves to is checked with each call.
    func permit(_ url: String) throws(CalloutRefusal) { _ = try policy.url(url) }

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
            let url = try policy.url(url)
            var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: url.requestTarget)
            head.headers = ["Host": url.hostField, "Content-Type": "application/json", "Accept": "application/json"]
            switch form {
            case .http:
                if let signer {
                    let signed = signer.headers(method: "POST", target: url.requestTarget, body: body, at: .now)
                    head.headers.add(contentsOf: HTTPHeaders(signed))
                }
            case .mobileGateway(let gateway):
                let wrapped = MobileGatewayQuestion(body, through: gateway, secret: signer?.secret, at: .now)
                head.headers.add(contentsOf: HTTPHeaders(wrapped.headers))
                body = wrapped.body
            }
            head.headers.add(name: "Content-Length", value: "\(body.count)")
            let deadline = NIODeadline.now() + .nanoseconds(limit.wholeMilliseconds * 1_000_000)
            let answer = try await exchange(head, ByteBuffer(bytes: body), with: url, of: instanceID, by: deadline)
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
    func close() { connections.close() }

    /// Resolves once, checks every address, and asks at one of them.
    private func exchange(
        _ head: HTTPRequestHead, _ body: ByteBuffer, with url: CalloutURL, of instanceID: InstanceID,
        by deadline: NIODeadline
    ) async throws -> TenantResponse {
        let addresses = try await addresses(of: url, by: deadline)
        try policy.check(addresses, port: url.port)
        for address in addresses {
            let key = TenantConnections.Key(instanceID, url, at: address)
            guard let waiting = connections.waiting(key) else { continue }
            do {
                return try await exchange(head, body, on: waiting, key, by: deadline)
            } catch let error as CalloutError where error != .closed {
                throw error
            } catch {
                // It had been idle, and the tenant's server was about to close it: a new one decides.
                break
            }
        }
        var failure: any Error = CalloutError.notInTime
        for address in addresses {
            let key = TenantConnections.Key(instanceID, url, at: address)
            let channel: any Channel
            do {
                channel = try await connections.connect(key, by: deadline)
            } catch {
                failure = error
                continue
            }
            return try await exchange(head, body, on: channel, key, by: deadline)
        }
        throw failure
    }

    private func exchange(
        _ head: HTTPRequestHead, _ body: ByteBuffer, on channel: any Channel, _ key: TenantConnections.Key,
        by deadline: NIODeadline
    ) async throws -> TenantResponse {
        let answer = try await connections.exchange(head, body, on: channel, by: deadline)
        if answer.keepsConnection, answer.status == .ok {
            connections.keep(channel, for: key)
        } else {
            channel.close(promise: nil)
        }
        return answer
    }

    private func addresses(of url: CalloutURL, by deadline: NIODeadline) async throws -> [IPAddress] {
        switch url.host {
        case .address(let address): return [address]
        case .name(let name):
            let loop = connections.loop
            let found = loop.makePromise(of: [IPAddress].self)
            let timer = loop.scheduleTask(deadline: deadline) { found.fail(CalloutError.notInTime) }
            defer { timer.cancel() }
            resolver.addresses(of: name, on: loop).cascade(to: found)
            return try await found.futureResult.get()
        }
    }

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
