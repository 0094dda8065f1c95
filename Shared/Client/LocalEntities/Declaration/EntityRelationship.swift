/// A relationship from a parent to its children: rows of another type whose foreign key is the parent's key.
///
/// Saving, deleting, submitting or cancelling a parent does the same to its children (ENT2).
public struct EntityRelationship: Sendable, Hashable {
    /// The parent's name for its children, for example `notes`. The rules of attribute names apply.
    public let name: String
    /// The children's entity type.
    public let childType: String
    /// The attribute of the children that has the parent's key; it has the same type as the key.
    public let foreignKey: String
    /// The child's name for its parent in joins, for example `incident`; nil: joins start only at the parent.
    public let inverseName: String?

    /// Declares a relationship of the type that contains it.
    public init(_ name: String, to childType: String, foreignKey: String, inverse: String? = nil) {
        self.name = name
        self.childType = childType
        self.foreignKey = foreignKey
        inverseName = inverse
    }

    /// Declares a relationship to children of a Swift type.
    ///
    /// - Parameter foreignKey: the children's member that has the parent's key.
    public init<Child: EntityRecord>(
        _ name: String, to child: Child.Type, foreignKey: PartialKeyPath<Child>, inverse: String? = nil
    ) {
        // `EntitySchema` refuses the description of a key path as an attribute's name.
        let attribute = try? RecordMembers(of: child).name(of: foreignKey)
        self.init(
            name, to: Child.entityType.name, foreignKey: attribute ?? "\(foreignKey)", inverse: inverse)
    }
}
