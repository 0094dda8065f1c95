/// One attribute of an entity type, as declared.
public struct EntityAttribute: Sendable, Hashable {
    /// 1 to 60 ASCII letters, digits and `_`, not beginning with a digit; unique in its type whatever the case.
    public let name: String
    /// What it holds.
    public let type: AttributeType
    /// Whether it may have no value.
    public let isNullable: Bool
    /// Whether it has an index. With a store key an indexed attribute stays readable in the file.
    public let isIndexed: Bool

    /// An attribute; by default it has a value, and no index.
    public init(_ name: String, _ type: AttributeType, isNullable: Bool = false, isIndexed: Bool = false) {
        self.name = name
        self.type = type
        self.isNullable = isNullable
        self.isIndexed = isIndexed
    }

    /// The value as it is kept.
    ///
    /// - Throws: `EntityError.wrongDataType`.
    func checked(_ value: AttributeValue, of typeName: String) throws(EntityError) -> AttributeValue {
        guard let kept = value.converted(to: type) else {
            throw EntityError(.wrongDataType, "\(typeName).\(name) takes \(type.rawValue)")
        }
        guard isNullable || kept != .null else {
            throw EntityError(.wrongDataType, "\(typeName).\(name) needs a value")
        }
        return kept
    }
}
