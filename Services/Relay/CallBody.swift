import Foundation
import ServiceKit
import SyncModel
import SyncStore

/// The body of a call: JSON that a tenant reads (deploy/manual/DeviceOperations.md); pure.
enum CallBody {
    /// The deepest nesting of an operation body that is sent as JSON; a deeper body is sent as Base64.
    private static let levels = 64

    /// - Parameters:
    ///   - children: the children of the operation.
    ///   - sessionID: nil: no longer known.
    static func body(of stored: DeviceOperationStore.StoredOperation, children: [DeviceOperation], sessionID: String?)
        -> Data
    {
        var json = "{"
        json.append(members(of: stored.operation))
        json.appendMember("userId", stored.userID.text)
        json.appendMember("deviceId", stored.deviceID.text)
        json.appendMember("sessionId", sessionID ?? "")
        json += ",\"submittedAt\":\(stored.operation.submittedAt.milliseconds),\"attempt\":\(stored.attempts)"
        json += ",\"children\":["
        json += children.map { "{\(members(of: $0))}" }.joined(separator: ",")
        json += "]}"
        return Data(json.utf8)
    }

    /// The members that an operation and a child have in common.
    private static func members(of operation: DeviceOperation) -> String {
        var json = "\"operationId\":"
        json.appendJSONString(operation.id)
        json.appendMember("component", operation.component)
        json.appendMember("entityKey", operation.key)
        json.appendMember("operation", operation.name)
        if operation.body.isEmpty { return json }
        if JSONReader.isValid(operation.body, levels: levels) {
            json += ",\"body\":" + String(decoding: operation.body, as: UTF8.self)
        } else {
            json.appendMember("bodyBase64", Data(operation.body).base64EncodedString())
        }
        return json
    }

    /// The key by which a tenant recognises repeated calls of one operation.
    static func idempotencyKey(of stored: DeviceOperationStore.StoredOperation) -> String {
        "\(stored.instanceID.text)/\(stored.deviceID.text)/\(stored.operation.id)"
    }
}

extension String {
    /// Appends a comma and a member with a text.
    mutating func appendMember(_ name: String, _ text: String) {
        self += ",\"\(name)\":"
        appendJSONString(text)
    }
}
