import ConnectionThread

/// One setting: its variable, the form it must have, and its default.
package struct SettingKey<Value: Sendable>: Sendable {
    /// The environment variable, `MSS_…`. The name ends with the unit.
    package let name: String
    /// The expected form in words.
    package let form: String
    package let example: String
    /// The default; nil for a required setting.
    package let standard: Value?
    /// Never printed; may be read from the file that `<name>_FILE` names.
    package let isSecret: Bool
    let parse: @Sendable (String) -> Value?

    init(
        _ name: String, form: String, example: String, standard: Value?, isSecret: Bool = false,
        parse: @escaping @Sendable (String) -> Value?
    ) {
        self.name = name
        self.form = form
        self.example = example
        self.standard = standard
        self.isSecret = isSecret
        self.parse = parse
    }

    /// The key for a process's list of settings.
    package var erased: AnySettingKey {
        AnySettingKey(name: name, form: form, example: example, isSecret: isSecret) { [self] text in
            guard let text else { return standard }
            return parse(text)
        }
    }
}

/// A setting without its type, for lists.
package struct AnySettingKey: Sendable {
    package let name: String
    let form: String
    let example: String
    let isSecret: Bool
    /// Parses the text, or returns the default for nil; nil when the value is invalid or missing.
    let value: @Sendable (String?) -> (any Sendable)?

    /// One line for a process's help: the form and the default.
    var help: String {
        let absent: String
        switch value(nil) {
        case nil: absent = "required, for example \(example)"
        case let text as String: absent = text.isEmpty ? "optional" : "default \(text)"
        case let number as Int: absent = "default \(number)"
        case let list as [String]: absent = list.isEmpty ? "optional" : "default \(list.joined(separator: ","))"
        default: absent = "default \(example)"
        }
        let file = isSecret ? "; better in a file that \(name)_FILE names" : ""
        return "\(name): \(form) (\(absent)\(file))"
    }
}

extension SettingKey where Value == String {
    /// Any text; an empty one counts as absent.
    package static func text(_ name: String, _ form: String, example: String, default standard: String?) -> Self {
        SettingKey(name, form: form, example: example, standard: standard) { $0 }
    }

    /// A text that is never printed.
    package static func secret(_ name: String, _ form: String, default standard: String?) -> Self {
        SettingKey(name, form: form, example: "…", standard: standard, isSecret: true) { $0 }
    }

    /// One of the listed values.
    package static func choice(_ name: String, of values: [String], default standard: String) -> Self {
        let form = "one of " + values.joined(separator: ", ")
        return SettingKey(name, form: form, example: standard, standard: standard) { values.contains($0) ? $0 : nil }
    }
}

extension SettingKey where Value == String {
    /// One or several servers (`ServerAddress.list`).
    ///
    /// - Parameter portName: the setting of the port of those without one.
    package static func servers(_ name: String, of server: String, portName: String) -> Self {
        let form =
            "the host of \(server), or several, separated by commas; each may end in :PORT instead of \(portName)"
        return SettingKey(name, form: form, example: "a.example,b.example:5673", standard: "127.0.0.1") { text in
            ServerAddress.list(text, defaultPort: 1).map { _ in text }
        }
    }
}

extension SettingKey where Value == Int {
    /// A whole number within bounds.
    package static func integer(_ name: String, in range: ClosedRange<Int>, default standard: Int?) -> Self {
        let form = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        return SettingKey(name, form: form, example: String(standard ?? range.lowerBound), standard: standard) { text in
            Int(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    /// A TCP port.
    package static func port(_ name: String, default standard: Int?) -> Self {
        let key = integer(name, in: 1...65_535, default: standard)
        return SettingKey(
            name, form: key.form, example: String(standard ?? 7_180), standard: standard, parse: key.parse)
    }
}

extension SettingKey where Value == Duration {
    /// Whole milliseconds; the name ends in `_MS`.
    package static func milliseconds(_ name: String, in range: ClosedRange<Int>, default standard: Int) -> Self {
        let form = "milliseconds, a whole number from \(range.lowerBound) to \(range.upperBound)"
        return SettingKey(name, form: form, example: String(standard), standard: .milliseconds(standard)) { text in
            Int(text).flatMap { range.contains($0) ? .milliseconds($0) : nil }
        }
    }

    /// Whole seconds; the name ends in `_SECONDS`.
    package static func seconds(_ name: String, in range: ClosedRange<Int>, default standard: Int) -> Self {
        let form = "seconds, a whole number from \(range.lowerBound) to \(range.upperBound)"
        return SettingKey(name, form: form, example: String(standard), standard: .seconds(standard)) { text in
            Int(text).flatMap { range.contains($0) ? .seconds($0) : nil }
        }
    }
}

extension SettingKey where Value == [String] {
    /// Comma-separated texts.
    ///
    /// - Parameter isGood: whether an element is valid.
    package static func list(
        _ name: String, _ form: String, example: String, isGood: @escaping @Sendable (String) -> Bool = { _ in true }
    ) -> Self {
        SettingKey(name, form: form, example: example, standard: []) { text in
            let elements = text.split(separator: ",").map { String($0.drop { $0 == " " }) }
            return elements.allSatisfy(isGood) ? elements : nil
        }
    }
}
