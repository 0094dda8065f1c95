import Foundation

/// A process's settings. All are read and checked before the process starts anything.
///
/// The environment takes precedence over the JSON object of texts that `MSS_CONFIG_FILE` names.
package struct Settings: Sendable {
    /// Every invalid setting, each with the expected form.
    package struct Problems: Error, CustomStringConvertible, Equatable {
        package let lines: [String]
        package var description: String { lines.joined(separator: "\n") }
    }

    private static let fileKey = "MSS_CONFIG_FILE"
    /// Prefixes of variables for tools and tests; every process ignores them.
    private static let foreignPrefixes = ["MSS_TEST_", "MSS_STACK_"]

    private let values: [String: any Sendable]
    private let keys: [AnySettingKey]

    /// Reads and checks all settings.
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

    /// The value of a setting. A key that is not in the process's list is a programming error and traps.
    package subscript<Value>(key: SettingKey<Value>) -> Value {
        guard let value = values[key.name] as? Value else {
            preconditionFailure("\(key.name) is not in this process's list of settings")
        }
        return value
    }

    /// Whether the process's list contains the setting.
    func has<Value>(_ key: SettingKey<Value>) -> Bool { values[key.name] != nil }

    /// The settings in force, one on each line, without the values of secrets.
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
