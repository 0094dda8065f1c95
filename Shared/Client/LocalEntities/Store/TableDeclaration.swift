/// The stored form of a type's declaration. It detects the changes that an update of the app makes.
struct TableDeclaration: Codable, Hashable {
    let key: String
    /// The types by attribute name.
    let attributes: [String: String]
    /// The nullable attributes.
    let nullable: Set<String>
    /// The attributes that are never encrypted.
    let readable: Set<String>

    init(_ type: EntityType, in schema: EntitySchema) {
        key = type.keyAttribute
        attributes = Dictionary(uniqueKeysWithValues: type.attributes.map { ($0.name, $0.type.rawValue) })
        nullable = Set(type.attributes.filter(\.isNullable).map(\.name))
        readable = Set(type.attributes.filter { schema.isReadable($0, of: type) }.map(\.name))
    }

    /// The attributes that are encrypted when the store has a key.
    var sealed: Set<String> { Set(attributes.keys).subtracting(readable) }
}
