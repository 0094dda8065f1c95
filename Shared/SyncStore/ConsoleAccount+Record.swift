import Foundation
package import SyncModel

extension ConsoleAccount {
    /// Words of its roles by instance id.
    package var rolesByInstance: [String: String] {
        Dictionary(uniqueKeysWithValues: grants.map { ($0.key.text, $0.value.word) })
    }

    /// What the records keep of it, as JSON (spec C9).
    package var record: String {
        struct Record: Encodable {
            let name: String
            let enabled: Bool
            let roles: [String: String]
        }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let record = Record(name: name, enabled: isEnabled, roles: rolesByInstance)
        return (try? encoder.encode(record)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }
}
