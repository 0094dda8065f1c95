/// What a store keeps of a type's declaration, to find what an update of the app has changed.
struct TableDeclaration: Codable, Hashable {
    let key: String
    /// Types by attribute.
    let attributes: [String: String]
    /// Attributes that may be null.
    let nullable: Set<String>
    /// Attributes that are not sealed when there is a store key.
    let readable: Set<String>

    init(_ type: EntityType, in schema: EntitySchema) {
        key = type.keyAttribute
        attributes = Dictionary(uniqueKeysWithValues: type.attributes.map { ($0.name, $0.type.rawValue) })
        nullable = Set(type.attributes.filter(\.isNullable).map(\.name))
        readable = Set(type.attributes.filter { schema.isReadable($0, of: type) }.map(\.name))
    }

    /// Attributes that are sealed when there is a store key.
    var sealed: Set<String> { Set(attributes.keys).subtracting(readable) }
}
