import BackendCalls
import Foundation
import SyncModel
import SyncStore
import TenantCalls

/// The body of a call: JSON that a tenant reads (deploy/README.md, Operations); pure.
enum CallQuestion {
    /// Levels of a body that goes as JSON; a deeper one goes as bytes.
    private static let levels = 64

    /// - Parameters:
    ///   - sessionID: nil: it is not known any more.
    ///   - children: of the operation.
    static func body(of held: DeviceOperationStore.Held, children: [DeviceOperation], sessionID: String?) -> Data {
        var json = "{"
        json.append(members(of: held.operation))
        json.appendMember("userId", held.userID.text)
        json.appendMember("deviceId", held.deviceID.text)
        json.appendMember("sessionId", sessionID ?? "")
        json += ",\"submittedAt\":\(held.operation.submittedAt.milliseconds),\"attempt\":\(held.attempts)"
        json += ",\"children\":["
        json += children.map { "{\(members(of: $0))}" }.joined(separator: ",")
        json += "]}"
        return Data(json.utf8)
    }

    /// What is the same of an operation and of a child.
    private static func members(of operation: DeviceOperation) -> String {
        var json = "\"operationId\":"
        json.appendJSONString(operation.id)
        json.appendMember("component", operation.component)
        json.appendMember("entityKey", operation.key)
        json.appendMember("operation", operation.name)
        if operation.body.isEmpty { return json }
        if AnswerJSON(operation.body, levels: levels) != nil {
            json += ",\"body\":" + String(decoding: operation.body, as: UTF8.self)
        } else {
            json.appendMember("bodyBase64", Data(operation.body).base64EncodedString())
        }
        return json
    }

    /// What names an operation to a tenant in every repeat.
    static func idempotencyKey(of held: DeviceOperationStore.Held) -> String {
        "\(held.instanceID.text)/\(held.deviceID.text)/\(held.operation.id)"
    }
}

extension String {
    /// Appends a member with a text, behind another.
    mutating func appendMember(_ name: String, _ text: String) {
        self += ",\"\(name)\":"
        appendJSONString(text)
    }
}
