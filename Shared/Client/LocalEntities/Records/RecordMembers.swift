import Foundation

/// The coded members of a Swift type: names, attribute types, and the key paths that lead to them.
///
/// Swift has no other way from a type to its coding keys. So samples of the type are decoded: in the first one all
/// members have their first value, and in each other one a single member has its second value. A key path belongs to
/// the member with which its value changes.
struct RecordMembers<Record: Decodable> {
    /// A member as an attribute.
    struct Attribute {
        let name: String
        let type: AttributeType
        let isNullable: Bool
    }

    /// The members in the order in which the type decodes them.
    let attributes: [Attribute]
    private let first: Record
    /// The samples in which one member has its second value, by the member's name.
    private let seconds: [(name: String, record: Record)]

    /// - Throws: `EntityError.invalidDeclaration` for a type of which no sample can be decoded.
    init(of record: Record.Type) throws(EntityError) {
        let members = SampledMembers()
        do {
            first = try Record(from: SampleDecoder(members: members, varied: nil))
        } catch {
            throw EntityError(.invalidDeclaration, "\(record): the attributes cannot be derived (\(error))")
        }
        var seconds: [(String, Record)] = []
        for name in members.names {
            // Without a second value, no key path leads to the member.
            if let record = try? Record(from: SampleDecoder(members: members, varied: name)) {
                seconds.append((name, record))
            }
        }
        self.seconds = seconds
        attributes = members.names.map { name in
            Attribute(name: name, type: members.types[name] ?? .json, isNullable: members.nullable.contains(name))
        }
    }

    /// The name of the member to which a key path leads.
    ///
    /// - Throws: `EntityError.noSuchAttribute` for any other path, such as one to a computed member.
    func name(of path: PartialKeyPath<Record>) throws(EntityError) -> String {
        // A structure has no place for the value of a computed member, or of one with observers.
        guard Record.self is AnyClass || MemoryLayout<Record>.offset(of: path) != nil else { throw Self.refused(path) }
        let before = Self.coded(first[keyPath: path])
        let changed = seconds.filter { Self.coded($0.record[keyPath: path]) != before }.map(\.name)
        guard changed.count == 1, let name = changed.first else {
            throw Self.refused(path)
        }
        return name
    }

    private static func refused(_ path: PartialKeyPath<Record>) -> EntityError {
        EntityError(
            .noSuchAttribute,
            "the key path \(path) leads to no stored, coded member of \(Record.self); use such a member")
    }

    /// The coded form of a value; nil for null.
    private static func coded(_ value: Any) -> Data? {
        guard let value = value as? any Encodable else { return nil }
        return try? JSONEncoder().encode([Coded(value: value)])
    }

    private struct Coded: Encodable {
        let value: any Encodable
        func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
    }
}
