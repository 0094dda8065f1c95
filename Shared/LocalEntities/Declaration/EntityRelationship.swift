/// A parent's children: rows of another type whose foreign key is the parent's key.
///
/// Saving, deleting, submitting and cancelling a parent does the same to its children (spec, two-way §2).
public struct EntityRelationship: Sendable, Hashable {
    /// As the parent calls its children, for example `notes`; formed as attributes' names are.
    public let name: String
    /// The children's entity type.
    public let childType: String
    /// The children's attribute that has the parent's key; of the same type as that.
    public let foreignKey: String
    /// As a child calls its parent in joins, for example `incident`; nil: joins go from the parent only.
    public let inverseName: String?

    /// A relationship of the type that declares it.
    public init(_ name: String, to childType: String, foreignKey: String, inverse: String? = nil) {
        self.name = name
        self.childType = childType
        self.foreignKey = foreignKey
        inverseName = inverse
    }
}
