/// A Swift type whose values are rows of an entity type: its coded members are the attributes.
///
/// A member that is an optional goes with an attribute that is nullable; `Data` and `[UInt8]` with bytes, `Date` with a
/// date, and everything else that is coded in a container with JSON.
public protocol EntityRecord: Codable, Sendable {
    /// The declaration, as the store's schema has it.
    static var entityType: EntityType { get }
}
