/// The declaration of an entity type. The Client Object API calls it a mobile business object (ENT1).
public struct EntityType: Sendable, Hashable {
    /// The name of the type. It is also the component of its operations and the Sync ID of its oplogs.
    public let name: String
    /// The attributes in the order of declaration.
    public let attributes: [EntityAttribute]
    /// The attribute that identifies a row; of type text or integer. Its value is never null and never changes.
    public let keyAttribute: String
    /// The relationships to its children.
    public let relationships: [EntityRelationship]
    /// The operations other than create, update and delete.
    public let operations: [EntityOperationType]
    /// The group of the type; `submitPendingOperations` and synchronisations can select types by group.
    public let group: String
    /// Whether the type is local only: its rows are never sent, and no data arrives for it.
    public let isLocalOnly: Bool
    /// The reason why the attributes of a Swift type could not be read. `EntitySchema` throws it.
    var fault: EntityError?

    /// Declares a type with attributes by name. `EntitySchema` checks it.
    public init(
        _ name: String, key: String, attributes: [EntityAttribute], relationships: [EntityRelationship] = [],
        operations: [EntityOperationType] = [], group: String = "default", isLocalOnly: Bool = false
    ) {
        self.name = name
        self.attributes = attributes
        keyAttribute = key
        self.relationships = relationships
        self.operations = operations
        self.group = group
        self.isLocalOnly = isLocalOnly
    }

    /// Declares a type whose attributes are the coded members of a Swift type, with their coding keys as names.
    ///
    /// An optional member is a nullable attribute. `String`, `UUID` and `URL` are text; integers, floating-point
    /// numbers, `Decimal`, `Bool` and `Date` have a type of their own; `Data` and `[UInt8]` are bytes. An enum with raw
    /// values has the type of these; it must be `CaseIterable`, unless it is optional. Everything else is JSON.
    ///
    /// - Parameters:
    ///   - name: by default the name of the Swift type.
    ///   - key: the member that identifies a row.
    ///   - indexed: the members that have an index. They stay readable in the file of an encrypted store.
    public init<Record: EntityRecord>(
        of record: Record.Type, name: String? = nil, key: PartialKeyPath<Record>,
        indexed: [PartialKeyPath<Record>] = [], relationships: [EntityRelationship] = [],
        operations: [EntityOperationType] = [], group: String = "default", isLocalOnly: Bool = false
    ) {
        var attributes: [EntityAttribute] = []
        var (keyName, fault) = ("", EntityError?.none)
        do throws(EntityError) {
            let members = try RecordMembers(of: record)
            let indexes = try indexed.map { path throws(EntityError) in try members.name(of: path) }
            keyName = try members.name(of: key)
            attributes = members.attributes.map { member in
                EntityAttribute(
                    member.name, member.type, isNullable: member.isNullable, isIndexed: indexes.contains(member.name))
            }
        } catch {
            fault = error
        }
        self.init(
            name ?? String(describing: record), key: keyName, attributes: attributes, relationships: relationships,
            operations: operations, group: group, isLocalOnly: isLocalOnly)
        self.fault = fault
    }

    /// Returns the attribute with a name.
    ///
    /// - Throws: `EntityError.noSuchAttribute`.
    public func attribute(_ name: String) throws(EntityError) -> EntityAttribute {
        guard let found = attributes.first(where: { $0.name == name }) else {
            throw EntityError(.noSuchAttribute, "\(self.name) has no attribute \(name)")
        }
        return found
    }

    /// Returns the relationship with a name.
    ///
    /// - Throws: `EntityError.noSuchAttribute`.
    public func relationship(_ name: String) throws(EntityError) -> EntityRelationship {
        guard let found = relationships.first(where: { $0.name == name }) else {
            throw EntityError(.noSuchAttribute, "\(self.name) has no relationship \(name)")
        }
        return found
    }

    /// Returns the operation with a name.
    ///
    /// - Throws: `EntityError.noSuchOperation`.
    func operation(_ name: String) throws(EntityError) -> EntityOperationType {
        guard let found = operations.first(where: { $0.name == name }) else {
            throw EntityError(.noSuchOperation, "\(self.name) has no operation \(name)")
        }
        return found
    }

    /// The key in the form of oplogs and operations: the text, or the digits of the integer.
    ///
    /// - Throws: `EntityError.wrongDataType` for null and for another type than that of the key attribute.
    func keyText(of value: AttributeValue?) throws(EntityError) -> String {
        switch (value, try attribute(keyAttribute).type) {
        case (.text(let text)?, .text): return text
        case (.integer(let number)?, .integer): return String(number)
        default: throw EntityError(.wrongDataType, "the key \(name).\(keyAttribute) must have a value of its type")
        }
    }

    /// The key attribute's value from the form of oplogs; nil when the text cannot be a key.
    func keyValue(of text: String) -> AttributeValue? {
        switch (try? attribute(keyAttribute))?.type {
        case .text?: .text(text)
        case .integer?: Int64(text).flatMap { String($0) == text ? .integer($0) : nil }
        default: nil
        }
    }

    /// Converts all attributes to their stored form; a missing attribute is null.
    ///
    /// - Throws: `EntityError`: `noSuchAttribute`, `wrongDataType`.
    func checked(_ fields: [String: AttributeValue]) throws(EntityError) -> [String: AttributeValue] {
        for name in fields.keys { _ = try attribute(name) }
        var kept: [String: AttributeValue] = [:]
        for attribute in attributes {
            kept[attribute.name] = try attribute.checked(fields[attribute.name] ?? .null, of: name)
        }
        return kept
    }
}
