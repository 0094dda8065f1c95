import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel

/// Asks a tenant about one session over HTTP, directly or through a mobile gateway (spec V2).
struct SessionEndpoint: Sendable {
    /// The members of the question, as tenants know them.
    private struct Question: Encodable {
        let instanceId: String
        let userId: String
        let sessionId: String
    }

    private static let connectLimit = TimeAmount.seconds(1)

    private let client: HTTPClient
    private let limit: Duration

    /// - Parameter limit: for the whole call, from the name's lookup to the answer's last byte.
    init(limit: Duration) {
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.decompression = .disabled
        configuration.httpVersion = .http1Only
        configuration.timeout.connect = Self.connectLimit
        client = HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
        self.limit = limit
    }

    /// The tenant's answer, or why there is none; never longer than the limit.
    func check(
        _ url: String, as form: ValidatorForm = .http, instanceID: InstanceID, userID: UserID, sessionID: String
    ) async -> CheckOutcome {
        let question = Question(instanceId: instanceID.text, userId: userID.text, sessionId: sessionID)
        guard var body = try? JSONEncoder().encode(question) else { return .unknown("the question is no JSON") }
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Accept", value: "application/json")
        if case .mobileGateway(let gateway) = form {
            let wrapped = MobileGatewayQuestion(body, through: gateway, at: .now)
            for (name, value) in wrapped.headers { request.headers.add(name: name, value: value) }
            body = wrapped.body
        }
        request.body = .bytes(ByteBuffer(bytes: body))
        return await withTaskGroup(of: CheckOutcome.self) { [request] group in
            group.addTask { await exchange(request, as: form, sessionID: sessionID) }
            // The client's own deadline ends with the head of the answer; this one covers a body that drips in.
            group.addTask {
                try? await Task.sleep(for: limit)
                return .unknown("no answer within \(limit.wholeMilliseconds) ms")
            }
            defer { group.cancelAll() }
            return await group.next() ?? .unknown("no answer")
        }
    }

    /// Ends the client; nothing may be asked afterwards.
    func close() async { try? await client.shutdown() }

    private func exchange(
        _ request: HTTPClientRequest, as form: ValidatorForm, sessionID: String
    ) async -> CheckOutcome {
        do {
            let response = try await client.execute(request, timeout: .nanoseconds(limit.wholeMilliseconds * 1_000_000))
            guard response.status == .ok else {
                return .unknown("the tenant answered with status \(response.status.code)")
            }
            if form != .http {
                // The gateway answers 200 also when the tenant's service failed behind it.
                let result = response.headers.first(name: MobileGatewayQuestion.resultStatus.name)
                guard result == MobileGatewayQuestion.resultStatus.good else {
                    return .unknown("the mobile gateway says that the call failed")
                }
            }
            var body = try await response.body.collect(upTo: TenantAnswer.bytesMax)
            let bytes = body.readBytes(length: body.readableBytes) ?? []
            return TenantAnswer.outcome(of: bytes, sessionID: sessionID)
        } catch is NIOTooManyBytesError {
            return .unknown("the answer is longer than \(TenantAnswer.bytesMax) bytes")
        } catch {
            // The client's errors name hosts and states, never headers or bodies.
            return .unknown("the call failed: \(error)")
        }
    }
}
