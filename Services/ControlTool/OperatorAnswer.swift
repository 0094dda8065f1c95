import ArgumentParser
import Foundation
import SyncModel

/// What the oplog writers answered to a person's command, printed as the API answers a backend's.
struct OperatorAnswer: Encodable {
    let success: Bool
    let msg: String
    let retryable: Bool
    var oplogId: Int64?
    var detail: String?

    init(_ code: ResultCode, oplogId: Int64? = nil, detail: String? = nil) {
        success = code.isSuccess
        msg = code.rawValue
        retryable = code.isRetryable
        self.oplogId = oplogId
        self.detail = detail
    }

    /// Prints it; a failure ends the tool with 1.
    func show() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        print(String(decoding: try encoder.encode(self), as: UTF8.self))
        if !success { throw ExitCode.failure }
    }

    /// It is not known whether every gateway has taken note.
    static let uncertain = OperatorAnswer(
        .systemError, detail: "It is not known whether every gateway has taken note; repeat it.")
}
