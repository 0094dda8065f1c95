import Foundation

/// What a record tells of a thing, before and after, line by line in the groups of the guide (spec C9); pure.
struct RecordDetail: Sendable {
    /// One member.
    struct Line: Sendable, Hashable {
        let name: String
        let value: String
        /// Absent: there was none, or it is the same.
        let was: String?
        let isChanged: Bool
    }

    /// Members that belong together.
    struct Group: Sendable, Hashable {
        let name: String
        let lines: [Line]
    }

    /// The groups of a configuration, and the members of each in order; others come last.
    private static let groups: [(word: String, members: [String])] = [
        ("groupBasic", ["bizType", "description", "scope", "online", "immediate"]),
        ("groupTarget", ["target", "linkToken", "multiDevice"]),
        ("groupPersistence", ["persistent", "repush", "threshold"]),
        ("groupSecurity", ["checkSession", "verdictLifetimeSeconds"]),
    ]

    let groups: [Group]

    /// - Parameters:
    ///   - before: JSON of an object, as the record has it.
    ///   - after: likewise.
    init(before: String?, after: String?, _ words: Words) {
        let (old, new) = (Self.members(of: before), Self.members(of: after))
        let isChange = before != nil && after != nil
        func line(_ member: String) -> Line {
            let (was, value) = (old[member], new[member] ?? (after == nil ? old[member] : nil))
            let isChanged = isChange && was != new[member]
            return Line(
                name: words.text("member.\(member)"), value: value ?? "–", was: isChanged ? was ?? "–" : nil,
                isChanged: isChanged)
        }
        var left = Set(old.keys).union(new.keys).subtracting(["revision", "instanceId"])
        var groups: [Group] = []
        for (word, members) in Self.groups {
            let lines = members.filter { left.remove($0) != nil }.map(line)
            if !lines.isEmpty { groups.append(Group(name: words.text(word), lines: lines)) }
        }
        let rest = left.sorted().map(line)
        if !rest.isEmpty { groups.append(Group(name: words.text("groupOther"), lines: rest)) }
        self.groups = groups
    }

    /// Members by name, each as a text.
    private static func members(of json: String?) -> [String: String] {
        guard let json, let object = try? JSONDecoder().decode([String: RecordValue].self, from: Data(json.utf8))
        else { return [:] }
        return object.mapValues(\.text)
    }
}

/// Any JSON value, as a text for people.
struct RecordValue: Decodable {
    let text: String

    init(from decoder: any Decoder) throws {
        if let object = try? decoder.container(keyedBy: Name.self) {
            text = try object.allKeys.sorted { $0.stringValue < $1.stringValue }
                .map { "\($0.stringValue): \(try object.decode(RecordValue.self, forKey: $0).text)" }
                .joined(separator: ", ")
            return
        }
        if var list = try? decoder.unkeyedContainer() {
            var parts: [String] = []
            while !list.isAtEnd { parts.append(try list.decode(RecordValue.self).text) }
            text = parts.joined(separator: ", ")
            return
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            text = "–"
        } else if let flag = try? value.decode(Bool.self) {
            text = flag ? "true" : "false"
        } else if let number = try? value.decode(Int64.self) {
            text = String(number)
        } else if let number = try? value.decode(Double.self) {
            text = String(number)
        } else {
            text = try value.decode(String.self)
        }
    }

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
