import Credentials
import Foundation
package import SyncModel

extension OperationRecord {
    /// The record as one line of JSON without its end, for exports. The hash covers the texts as they stand here:
    /// `actor`, `source` and `subject` between their quotes, `before` and `after` as they are.
    package var jsonLine: String {
        let members = [
            "\"number\":\(number)", "\"recordedAt\":\"\(recordedAt.text)\"",
            "\"recordedAtMicroseconds\":\(recordedAtMicroseconds)", "\"actor\":\"\(actor)\"",
            "\"source\":\"\(source)\"",
            "\"action\":\"\(actionWord)\"", "\"instanceId\":\(Self.quoted(instanceID.text))",
            "\"subject\":\"\(subject)\"", "\"before\":\(before ?? "null")", "\"after\":\(after ?? "null")",
            "\"previousHash\":\"\(HexText.of(previousHash))\"", "\"hash\":\"\(HexText.of(hash))\"",
        ]
        return "{\(members.joined(separator: ","))}"
    }

    private static func quoted(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        // Encoding a text cannot fail.
        return (try? encoder.encode(text)).map { String(decoding: $0, as: UTF8.self) } ?? "null"
    }
}
