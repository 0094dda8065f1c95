import Foundation
import SyncModel

/// The names and values of a record's members as text, instead of the store's names (C9); pure.
struct RecordWords: Sendable {
    /// Members with values of a closed set, and the key of the set's texts.
    private static let sets = [
        "scope": "scope", "purpose": "purpose", "validatorMode": "validatorMode", "repush": "repush",
        "state": "rolloutState", "network": "network",
    ]
    /// The keys of the texts for absent values.
    private static let absences = [
        "requestsPerSecond": "noBound", "pushesPerDay": "noBound", "verdictLifetimeSeconds": "asInstance",
        "osType": "anySystem", "appMinVersion": "noBound", "appMaxVersion": "noBound", "validTimeEnd": "asLongAsKept",
        "conversation": "none", "sessionDigest": "everySession",
    ]

    /// Whether the record is of a configuration. Its member `target` is then a kind; in other records it is an id.
    let isConfiguration: Bool
    let words: PageTexts

    /// The members of a JSON object by name; empty when the text is not an object.
    func members(of json: String?) -> [String: RecordValue] {
        guard let json, let read = try? JSONDecoder().decode([String: RecordValue].self, from: Data(json.utf8))
        else { return [:] }
        guard isConfiguration, case .whole(let newest)? = read["repush"] else { return read }
        // The store has one member for the mode and its threshold; the page has two.
        var members = read
        members["repush"] = .text("threshold")
        members["threshold"] = .whole(newest)
        return members
    }

    /// The name of a member.
    func name(of member: String) -> String {
        if member == "target", !isConfiguration { return words.text("member.linkToken") }
        let own = words.texts["member.\(member)"]
        return own ?? words.text(member)
    }

    /// The text of a member's value.
    func text(of value: RecordValue?, _ member: String) -> String {
        switch value {
        case nil, .nothing: Self.absences[member].map { words.text($0) } ?? "–"
        case .flag(let isOn): words.text(isOn ? "yes" : "no")
        case .whole(let number) where member == "verdictLifetimeSeconds": "\(number) s"
        case .whole(let number) where member == "retentionDays": "\(number) \(words.text("days"))"
        case .whole(let moment) where ["validTimeEnd", "from", "to"].contains(member):
            WallTime(milliseconds: moment).text
        case .whole(let number): String(number)
        case .number(let number): String(number)
        case .text(let text): self.text(of: text, member)
        case .list(let values): values.map { self.text(of: $0, member) }.joined(separator: ", ")
        case .object(let values) where member == "roles": roles(values)
        case .object(let values):
            values.sorted { $0.key < $1.key }.map { "\(name(of: $0.key)): \(self.text(of: $0.value, $0.key))" }
                .joined(separator: ", ")
        }
    }

    private func text(of text: String, _ member: String) -> String {
        let set = member == "target" && isConfiguration ? "target" : Self.sets[member]
        return set.flatMap { words.sets[$0]?[text] } ?? text
    }

    /// The roles of an account by instance; the empty id means every instance.
    private func roles(_ values: [String: RecordValue]) -> String {
        values.sorted { $0.key < $1.key }.map { instance, role in
            let place = instance.isEmpty ? words.text("everywhere") : instance
            guard case .text(let word) = role else { return place }
            return "\(place): \(words.text("role.\(word)"))"
        }.joined(separator: ", ")
    }
}

/// A value of a record's JSON.
enum RecordValue: Decodable, Hashable, Sendable {
    case nothing
    case flag(Bool)
    case whole(Int64)
    case number(Double)
    case text(String)
    case list([RecordValue])
    case object([String: RecordValue])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .nothing
        } else if let flag = try? value.decode(Bool.self) {
            self = .flag(flag)
        } else if let whole = try? value.decode(Int64.self) {
            self = .whole(whole)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let text = try? value.decode(String.self) {
            self = .text(text)
        } else if let list = try? value.decode([RecordValue].self) {
            self = .list(list)
        } else {
            self = .object(try value.decode([String: RecordValue].self))
        }
    }

    /// The value as a whole number; nil for any other value.
    var whole: Int64? {
        guard case .whole(let number) = self else { return nil }
        return number
    }
}
