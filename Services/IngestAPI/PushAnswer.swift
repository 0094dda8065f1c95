import Foundation
import SyncModel

/// The body of every answer (spec H1).
struct PushAnswer: Equatable, Sendable {
    var code: ResultCode
    var oplogID: OplogID?
    var detail: String?
    /// Shown, and false, only where nothing was attempted and nothing is known to be wrong with the push itself.
    var isAttempted = true

    /// The answer as JSON.
    func json(requestID: String) -> String {
        var text = "{\"success\":\(code.isSuccess),\"msg\":\"\(code.rawValue)\""
        if let oplogID { text += ",\"oplogId\":\(oplogID.value)" }
        if let detail { text += ",\"detail\":\(Self.quoted(detail))" }
        if !isAttempted { text += ",\"attempted\":false" }
        return text + ",\"requestId\":\"\(requestID)\"}"
    }

    private static func quoted(_ text: String) -> String {
        (try? JSONEncoder().encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "\"\""
    }
}
