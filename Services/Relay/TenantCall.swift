import BusMessages
import Credentials
import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import SyncStore
import TenantCalls

/// Has a tenant do one operation.
struct TenantCall: Sendable {
    let caller: TenantCaller
    let keys: OpenedKeys
    let ring: SealingRing
    /// An instance, enabled or not.
    let instance: @Sendable (InstanceID) -> Instance?

    /// Calls the tenant's endpoint; never throws, as every failure is an outcome.
    func make(_ held: DeviceOperationStore.Held) async -> CallOutcome {
        guard let instance = instance(held.instanceID), instance.isEnabled, !instance.relayURL.isEmpty else {
            return .again(
                code: 0, reason: "the instance is not enabled, or has no endpoint", named: nil, isAnswer: true)
        }
        let url: CalloutURL
        do throws(CalloutRefusal) {
            url = try caller.url(instance.relayURL)
        } catch {
            // A setting that is missing is no fault of the tenant's.
            return .again(code: 0, reason: "not called: \(error)", named: nil, isAnswer: true)
        }
        let children = DeviceOperation.children(stored: held.children)
        let body = CallQuestion.body(of: held, children: children, sessionID: sessionID(of: held))
        var fields: HTTPHeaders = [
            "Idempotency-Key": CallQuestion.idempotencyKey(of: held), "X-Request-Id": held.callID,
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

    private func sessionID(of held: DeviceOperationStore.Held) -> String? {
        if held.session.isEmpty { return nil }
        return ring.openText(held.session, of: .session(held.instanceID, held.deviceID, held.userID))
    }
}

extension DeviceOperationStore.Held {
    /// The call's own id, in the result and in logs.
    var callID: String { "\(number)-\(attempts)" }
}
