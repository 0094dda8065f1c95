import Foundation

/// A call of a tenant with an operation, as far as runs look at it (deploy/README.md, Operations).
struct TenantQuestion: Sendable {
    private struct Body: Decodable {
        let operationId: String
        let component: String
        let entityKey: String
        let deviceId: String
    }

    let operationID: String
    let component: String
    let entityKey: String
    let deviceID: String
    /// From the Idempotency-Key.
    let instance: String

    /// Nil: it is no such call.
    init?(idempotencyKey: String?, body: Data) {
        guard let instance = idempotencyKey?.split(separator: "/").first,
            let body = try? JSONDecoder().decode(Body.self, from: body)
        else { return nil }
        operationID = body.operationId
        component = body.component
        entityKey = body.entityKey
        deviceID = body.deviceId
        self.instance = String(instance)
    }
}
