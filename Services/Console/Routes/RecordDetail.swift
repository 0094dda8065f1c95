import Foundation
import SyncModel

/// The members of a record's item, before and after, as lines of text (C9); pure.
struct RecordDetail: Sendable {
    /// One member.
    struct Line: Sendable, Hashable {
        let name: String
        let value: String
        /// The former value; nil when the member is unchanged.
        var was: String?
        var isChanged = false
        /// For a time: milliseconds since 1970, which a page shows in the reader's time zone.
        var at: Int64?
    }

    /// A titled group of members.
    struct Group: Sendable, Hashable {
        let name: String
        let lines: [Line]
    }

    /// The groups of a configuration, as in the vendor guide, with their members in order.
    private static let configurationGroups: [(word: String, members: [String])] = [
        ("groupBasic", ["bizType", "description", "scope", "online", "immediate"]),
        ("groupTarget", ["target", "multiDevice"]),
        ("groupPersistence", ["persistent", "repush", "threshold"]),
        ("groupSecurity", ["checkSession", "verdictLifetimeSeconds"]),
        ("groupFilter", ["filter", "attributes", "parameters"]),
    ]
    /// The members of a push; absent ones are shown as well.
    private static let pushMembers = [
        "target", "thirdMsgId", "osType", "appMinVersion", "appMaxVersion", "validTimeEnd", "conversation",
        "payloadSha256",
    ]
    /// The first members of all other records; the remaining ones follow by name.
    private static let firstMembers = [
        "instanceId", "keyId", "name", "purpose", "target", "userId", "thirdMsgId", "oplogId", "deviceId", "enabled",
    ]

    let groups: [Group]

    init(_ record: OperationRecord, _ words: PageTexts) {
        let values = RecordWords(isConfiguration: Self.isOfConfiguration(record), words: words)
        let (old, new) = (values.members(of: record.before), values.members(of: record.after))
        // A removal shows the former values.
        let shown = record.after == nil ? old : new
        let isChange = record.before != nil && record.after != nil
        func line(_ member: String) -> Line {
            let isChanged = isChange && old[member] != new[member]
            return Line(
                name: values.name(of: member), value: values.text(of: shown[member], member),
                was: isChanged ? values.text(of: old[member], member) : nil, isChanged: isChanged,
                at: member == "validTimeEnd" ? shown[member]?.whole : nil)
        }
        func group(_ word: String, _ members: [String]) -> Group {
            Group(name: words.text(word), lines: members.map(line))
        }
        let all = Set(old.keys).union(new.keys)
        switch record.action {
        // The action itself says everything.
        case .enableSignature, .disableSignature: groups = []
        case _ where all.isEmpty: groups = []
        case .createSync: groups = [group("groupPush", Self.pushMembers.filter { all.contains($0) || $0 != "target" })]
        case _ where Self.isOfConfiguration(record):
            groups = Self.configurationGroups.map { word, members in
                group(word, members.filter(all.contains))
            }.filter { !$0.lines.isEmpty }
        default:
            let first = Self.firstMembers.filter(all.contains)
            groups = [group("groupDetails", first + all.subtracting(first + ["revision"]).sorted())]
        }
    }

    private static func isOfConfiguration(_ record: OperationRecord) -> Bool {
        switch record.action {
        case .createConfiguration, .modifyConfiguration, .deleteConfiguration, .publishConfiguration,
            .disableConfiguration:
            true
        default: false
        }
    }
}
