/// A Swift type whose values are rows of an entity type. Its coded members are the attributes.
///
/// An optional member needs a nullable attribute. `Data` and `[UInt8]` need an attribute of type bytes, `Date` of type
/// date, and members that are coded in a container of type json.
public protocol EntityRecord: Codable, Sendable {
    /// The type's declaration; the same as in the store's schema.
    static var entityType: EntityType { get }
}
