/// The kind of a resource. The names are those of the response header `MSS-Sync-Resource-Type`.
public enum ResourceKind: String, Sendable, Hashable, Codable, CaseIterable {
    /// One object, usually JSON.
    case item
    /// A collection of objects that each have a URI.
    case collection
    /// Bytes; with separate library defaults.
    case file

    /// The kind of a resource that is known only by an edit: an item when its content is JSON, otherwise a file.
    init(contentType: String) { self = contentType.contains("json") ? .item : .file }
}
