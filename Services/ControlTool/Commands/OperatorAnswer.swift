import ArgumentParser
import Foundation
import SyncModel

/// The writers' reply to an operator's command, printed in the format of the API.
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

    /// Prints the answer. Throws an exit code of 1 for a failure.
    func show() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        print(String(decoding: try encoder.encode(self), as: UTF8.self))
        if !success { throw ExitCode.failure }
    }

    /// The state of a gateway is unknown.
    static let uncertain = OperatorAnswer(
        .systemError, detail: "Not every gateway has acknowledged the command; repeat it.")
}
