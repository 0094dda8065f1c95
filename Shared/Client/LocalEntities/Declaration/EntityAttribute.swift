/// The declaration of one attribute of an entity type.
public struct EntityAttribute: Sendable, Hashable {
    /// The name: 1 to 60 ASCII letters, digits and `_`, not starting with a digit. It is unique in its type without
    /// regard to case.
    public let name: String
    /// The type of its values.
    public let type: AttributeType
    /// Whether the value can be null.
    public let isNullable: Bool
    /// Whether the attribute has an index. An indexed attribute stays readable in the file of an encrypted store.
    public let isIndexed: Bool

    /// Declares an attribute; by default it is not nullable and has no index.
    public init(_ name: String, _ type: AttributeType, isNullable: Bool = false, isIndexed: Bool = false) {
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.isIndexed = isIndexed
    }

    /// Converts a value to its stored form.
    ///
    /// - Throws: `EntityError.wrongDataType`.
    func checked(_ value: AttributeValue, of typeName: String) throws(EntityError) -> AttributeValue {
        guard let kept = value.converted(to: type) else {
            throw EntityError(.wrongDataType, "\(typeName).\(name) must be of type \(type.rawValue)")
        }
        guard isNullable || kept != .null else {
            throw EntityError(.wrongDataType, "\(typeName).\(name) must not be null")
        }
        return kept
    }
}
