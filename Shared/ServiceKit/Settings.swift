import Foundation

/// A process's settings, all read and checked before anything starts.
///
/// They come from the environment, and below it from the JSON object of texts that `MSS_CONFIG_FILE` names.
package struct Settings: Sendable {
    /// Everything that is wrong, each with what is expected.
    package struct Problems: Error, CustomStringConvertible, Equatable {
        package let lines: [String]
        package var description: String { lines.joined(separator: "\n") }
    }

    private static let fileKey = "MSS_CONFIG_FILE"
    /// Read by tools and tests from the same environment; no process has them.
    private static let foreignPrefixes = ["MSS_TEST_", "MSS_STACK_"]

    private let values: [String: any Sendable]
    private let keys: [AnySettingKey]

    /// Reads and checks.
    package init(_ keys: [AnySettingKey], environment: [String: String]) throws(Problems) {
        var problems: [String] = []
        var texts = Self.fileTexts(environment[Self.fileKey], &problems)
        texts.merge(environment.filter { $0.key.hasPrefix("MSS_") }) { $1 }
        texts[Self.fileKey] = nil
        for key in keys where key.isSecret {
            guard let path = texts.removeValue(forKey: key.name + "_FILE") else { continue }
            if let text = try? String(contentsOfFile: path, encoding: .utf8) {
                texts[key.name] = text.trimmingCharacters(in: .whitespacesAndNewlines)
            } else {
                problems.append("\(key.name)_FILE: the file \(path) cannot be read")
            }
        }
        var values: [String: any Sendable] = [:]
        for key in keys {
            let text = texts.removeValue(forKey: key.name).flatMap { $0.isEmpty ? nil : $0 }
            if let value = key.value(text) {
                values[key.name] = value
            } else {
                let found = text.map { key.isSecret ? "its value is not" : "\"\($0)\" is not" } ?? "it is required:"
                problems.append("\(key.name): \(found) \(key.form); for example \(key.name)=\(key.example)")
            }
        }
        for name in texts.keys.sorted() where !Self.foreignPrefixes.contains(where: name.hasPrefix) {
            problems.append(
                "\(name): this process has no such setting; it has \(keys.map(\.name).joined(separator: ", "))")
        }
        guard problems.isEmpty else { throw Problems(lines: problems) }
        self.values = values
        self.keys = keys
    }

    /// A setting of this process; asking for one that is not in its list is a programmer's error and traps.
    package subscript<Value>(key: SettingKey<Value>) -> Value {
        guard let value = values[key.name] as? Value else {
            preconditionFailure("\(key.name) is not in this process's list of settings")
        }
        return value
    }

    /// Whether this process has such a setting.
    func has<Value>(_ key: SettingKey<Value>) -> Bool { values[key.name] != nil }

    /// The settings in force, one a line, secrets hidden.
    package var listing: String {
        keys.map { key in
            let value = values[key.name].map { "\($0)" } ?? ""
            return "\(key.name)=\(key.isSecret ? (value.isEmpty ? "" : "(hidden)") : value)"
        }.joined(separator: "\n")
    }

    private static func fileTexts(_ path: String?, _ problems: inout [String]) -> [String: String] {
        guard let path else { return [:] }
        guard
            let data = FileManager.default.contents(atPath: path),
            let texts = try? JSONDecoder().decode([String: String].self, from: data)
        else {
            problems.append(
                "\(fileKey): \(path) is not a readable JSON object of texts, like {\"MSS_LOG_LEVEL\": \"info\"}")
            return [:]
        }
        return texts
    }
}
