/// A collection, or one page of it, as the app sees it.
public struct ResourceCollection: Sendable, Hashable {
    /// The URI with its query.
    public let uri: String
    /// The items in the backend's order. Items that were created here come last; items that were deleted here are left
    /// out.
    public let items: [Resource]
    /// The entity tag of the collection.
    public let etag: String?
    /// Whether this fetch was answered from the cache.
    public let isFromCache: Bool
    /// Whether the copy is expired, by its expiration policy or because of a push.
    public let isExpired: Bool
}
