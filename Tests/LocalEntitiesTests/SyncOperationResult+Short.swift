import Foundation
import MobileSync

extension SyncOperationResult {
    /// An answer with the named parts; all others have defaults.
    init(
        operationID: String, isAccepted: Bool, code: Int = 200, level: String = "INFO", message: String = "",
        requestID: String = "", at: Date = Date(timeIntervalSince1970: 0), imported: [UInt8]? = nil
    ) {
        self.init(
            operationID: operationID, component: "Incident", key: "1", name: "update", isAccepted: isAccepted,
            code: code, level: level, message: message, requestID: requestID, at: at, imported: imported)
    }
}
