/// A Swift type whose values are rows of an entity type. Its coded members are the attributes.
///
/// ```swift
/// struct Incident: EntityRecord {
///     static let entityType = EntityType(of: Incident.self, key: \.id)
///     var id: String, title: String, priority: Int?
/// }
/// ```
public protocol EntityRecord: Codable, Sendable {
    /// The type's declaration; the same as in the store's schema.
    static var entityType: EntityType { get }
}
