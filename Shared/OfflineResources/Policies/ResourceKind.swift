/// What a resource is; the names are those of the response header `MSS-Sync-Resource-Type`.
public enum ResourceKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// One object, JSON as a rule.
    case item
    /// Objects that each have a URI of their own.
    case collection
    /// Bytes; it has library defaults of its own.
    case file
}
