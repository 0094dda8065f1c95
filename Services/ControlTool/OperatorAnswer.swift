import ArgumentParser
import Foundation

/// What the oplog writers answered to a person's command, printed as the API answers a backend's.
struct OperatorAnswer: Encodable {
    let success: Bool
    let msg: String
    var oplogId: Int64?
    var detail: String?

    /// Prints it; a failure ends the tool with 1.
    func show() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        print(String(decoding: try encoder.encode(self), as: UTF8.self))
        if !success { throw ExitCode.failure }
    }

    /// It is not known whether every gateway has taken note.
    static let uncertain = OperatorAnswer(
        success: false, msg: "SYSTEM_ERROR", detail: "It is not known whether every gateway has taken note; repeat it.")
}
