/// A kind of record: what the neighbours call a mobile business object (spec, two-way §2).
public struct EntityType: Sendable, Hashable {
    /// At once the name of the class, the operations' component, and the Sync ID that its oplogs come under.
    public let name: String
    /// In the order of declaration.
    public let attributes: [EntityAttribute]
    /// The attribute that tells rows apart; of type text or integer, never null, and never changed.
    public let keyAttribute: String
    /// To its children.
    public let relationships: [EntityRelationship]
    /// Beside create, update and delete.
    public let operations: [EntityOperationType]
    /// What `submitPendingOperations` and synchronisation may name several types by.
    public let group: String
    /// It never leaves the device, and nothing comes for it.
    public let isLocalOnly: Bool

    /// A type; a schema checks it.
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

    /// The attribute of a name.
    ///
    /// - Throws: `EntityError.noSuchAttribute`.
    public func attribute(_ name: String) throws(EntityError) -> EntityAttribute {
        guard let found = attributes.first(where: { $0.name == name }) else {
            throw EntityError(.noSuchAttribute, "\(self.name) has no attribute \(name)")
        }
        return found
    }

    /// The relationship of a name.
    ///
    /// - Throws: `EntityError.noSuchAttribute`.
    public func relationship(_ name: String) throws(EntityError) -> EntityRelationship {
        guard let found = relationships.first(where: { $0.name == name }) else {
            throw EntityError(.noSuchAttribute, "\(self.name) has no relationship \(name)")
        }
        return found
    }

    /// The operation of a name.
    ///
    /// - Throws: `EntityError.noSuchOperation`.
    func operation(_ name: String) throws(EntityError) -> EntityOperationType {
        guard let found = operations.first(where: { $0.name == name }) else {
            throw EntityError(.noSuchOperation, "\(self.name) has no operation \(name)")
        }
        return found
    }

    /// The key as oplogs and operations write it: the text, or the whole number in digits.
    ///
    /// - Throws: `EntityError.wrongDataType` for null or another type than the key attribute's.
    func keyText(of value: AttributeValue?) throws(EntityError) -> String {
        switch (value, try attribute(keyAttribute).type) {
        case (.text(let text)?, .text): return text
        case (.integer(let number)?, .integer): return String(number)
        default: throw EntityError(.wrongDataType, "\(name).\(keyAttribute), the key, needs a value of its type")
        }
    }

    /// The key attribute's value of a key as oplogs write it; nil when it cannot be one.
    func keyValue(of text: String) -> AttributeValue? {
        switch (try? attribute(keyAttribute))?.type {
        case .text?: .text(text)
        case .integer?: Int64(text).flatMap { String($0) == text ? .integer($0) : nil }
        default: nil
        }
    }

    /// All attributes as they are kept.
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
