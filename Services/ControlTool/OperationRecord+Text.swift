import Credentials
import Foundation
import SyncModel

// Operation records for people at a terminal.
extension OperationRecord {
    /// One line of a list.
    var line: String {
        ["\(number)", recordedAt.text, actor, actionWord, instanceID.text, subject].map(OneLine.of)
            .joined(separator: "\t")
    }

    /// Everything of it; of what was changed the value before too.
    var page: String {
        let head = [
            ("record", "\(number)"), ("time", recordedAt.text), ("actor", actor), ("source", source),
            ("action", actionWord), ("instance", instanceID.text), ("subject", subject),
        ]
        let (old, new) = (Self.members(of: before), Self.members(of: after))
        let names = Set(old.keys).union(new.keys).sorted()
        let members = names.map { name in
            switch (old[name], new[name]) {
            case (let old?, let new?) where old != new: (name, "\(new)   (before: \(old))")
            case (let old, let new): (name, new ?? old ?? "")
            }
        }
        return (head + members + [("hash", HexText.of(hash))]).map { "\(OneLine.of($0.0)): \(OneLine.of($0.1))" }
            .joined(separator: "\n")
    }

    /// The members of a JSON object, each value as JSON.
    private static func members(of json: String?) -> [String: String] {
        guard let json, let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any] else {
            return [:]
        }
        return object.compactMapValues { value in
            let options: JSONSerialization.WritingOptions = [.fragmentsAllowed, .sortedKeys, .withoutEscapingSlashes]
            let data = try? JSONSerialization.data(withJSONObject: value, options: options)
            return data.map { String(decoding: $0, as: UTF8.self) }
        }
    }
}
