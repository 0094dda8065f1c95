import Foundation
import SyncModel

/// The members of a record and their values in words for people, never as the store writes them (spec C9); pure.
struct RecordWords: Sendable {
    /// Members whose values are of a closed set, with the set's words.
    private static let sets = [
        "scope": "scope", "purpose": "purpose", "validatorMode": "validatorMode", "repush": "repush",
        "state": "rolloutState", "network": "network",
    ]
    /// What is said where a member has no value.
    private static let absences = [
        "requestsPerSecond": "noBound", "pushesPerDay": "noBound", "verdictLifetimeSeconds": "asInstance",
        "osType": "anySystem", "appMinVersion": "noBound", "appMaxVersion": "noBound", "validTimeEnd": "asLongAsKept",
        "sessionDigest": "everySession",
    ]

    /// The record is of a configuration: its target is a kind, elsewhere it is somebody's id.
    let isConfiguration: Bool
    let words: Words

    /// What the JSON of an object has, by name; none when it is no object.
    func members(of json: String?) -> [String: RecordValue] {
        guard let json, let read = try? JSONDecoder().decode([String: RecordValue].self, from: Data(json.utf8))
        else { return [:] }
        guard isConfiguration, case .whole(let newest)? = read["repush"] else { return read }
        // The store has one member for the mode and its number, the guide two.
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

    /// The value of a member; nil: there is none.
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

    /// An account's roles: by instance, the empty one stands for all of them.
    private func roles(_ values: [String: RecordValue]) -> String {
        values.sorted { $0.key < $1.key }.map { instance, role in
            let place = instance.isEmpty ? words.text("everywhere") : instance
            guard case .text(let word) = role else { return place }
            return "\(place): \(words.text("role.\(word)"))"
        }.joined(separator: ", ")
    }
}
