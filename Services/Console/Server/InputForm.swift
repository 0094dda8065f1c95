import Foundation

/// Checks that apply to the input of every route, so that the store and the database can read every value; pure.
enum InputForm {
    /// - Throws: `wrong` with the name of an input that contains NUL, or of a whole number that does not fit into 64
    ///   bits.
    static func check(
        _ route: Route, parts: [String: String], query: [String: String], body: [UInt8]
    ) throws(ConsoleFault) {
        for (name, value) in parts.merging(query, uniquingKeysWith: { part, _ in part }) where value.utf8.contains(0) {
            throw .wrong(name, "fault.nul")
        }
        for input in route.queries where input.form == .whole {
            guard let value = query[input.name] else { continue }
            guard Int64(value) != nil else { throw .wrong(input.name, "fault.wrongType") }
        }
        guard !route.inputs.isEmpty, !body.isEmpty,
            let members = try? JSONSerialization.jsonObject(with: Data(body)) as? [String: Any]
        else { return }
        for (name, value) in members where hasNUL(name) || hasNUL(value) { throw .wrong(name, "fault.nul") }
        for input in route.inputs where input.form == .whole {
            guard let value = members[input.name] as? NSNumber else { continue }
            guard Int64(exactly: value) != nil else { throw .wrong(input.name, "fault.wrongType") }
        }
    }

    private static func hasNUL(_ value: Any) -> Bool {
        switch value {
        case let text as String: text.utf8.contains(0)
        case let list as [Any]: list.contains(where: hasNUL)
        case let object as [String: Any]: object.contains { hasNUL($0.key) || hasNUL($0.value) }
        default: false
        }
    }
}

extension String {
    /// The text without white space at both ends.
    var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
