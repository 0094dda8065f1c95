import BusMessages
import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import SyncStore
import TenantCalls

/// Calls a tenant's endpoint to execute one operation.
struct TenantCall: Sendable {
    let caller: TenantCaller
    let keys: OpenedKeys
    let ring: SealingRing
    /// Finds an instance, enabled or not.
    let instance: @Sendable (InstanceID) -> Instance?

    /// Calls the tenant's endpoint. Never throws: every failure is an outcome.
    func make(_ stored: DeviceOperationStore.StoredOperation) async -> CallOutcome {
        guard let instance = instance(stored.instanceID), instance.isEnabled, !instance.relayURL.isEmpty else {
            return .again(
                code: 0, reason: "the instance is unknown or disabled, or has no endpoint", named: nil, isAnswer: true)
        }
        let url: CalloutURL
        do throws(CalloutRefusal) {
            url = try caller.url(instance.relayURL)
        } catch {
            // A missing setting is not a failure of the tenant, so the circuit breaker must not count it.
            return .again(code: 0, reason: "not called: \(error)", named: nil, isAnswer: true)
        }
        let children = DeviceOperation.children(stored: stored.children)
        let body = CallBody.body(of: stored, children: children, sessionID: sessionID(of: stored))
        var fields: HTTPHeaders = [
            "Idempotency-Key": CallBody.idempotencyKey(of: stored), "X-Request-Id": stored.callID,
        ]
        if let key = instance.keys(for: .callout).first {
            guard let secret = keys.secret(of: key, instance.id) else {
                return .again(
                    code: 0, reason: "the key that signs calls cannot be opened; see MSS_SEALING_KEYS", named: nil,
                    isAnswer: true)
            }
            let signer = RequestSigner(keyID: key.id, secret: secret)
            let signed = signer.headers(method: "POST", target: url.requestTarget, body: body, at: .now)
            fields.add(contentsOf: HTTPHeaders(signed))
        }
        do {
            return CallOutcome(try await caller.post(body, to: url, fields: fields, of: instance.id))
        } catch let refusal as CalloutRefusal {
            return .again(code: 0, reason: "not called: \(refusal)", named: nil, isAnswer: true)
        } catch {
            // Errors of the connection name addresses and states, never headers or bodies.
            return .again(code: 0, reason: "the call failed: \(error)", named: nil, isAnswer: false)
        }
    }

    private func sessionID(of stored: DeviceOperationStore.StoredOperation) -> String? {
        if stored.session.isEmpty { return nil }
        return ring.openText(stored.session, of: .session(stored.instanceID, stored.deviceID, stored.userID))
    }
}

extension DeviceOperationStore.StoredOperation {
    /// The id of the call, in the result and in logs.
    var callID: String { "\(number)-\(attempts)" }
}
