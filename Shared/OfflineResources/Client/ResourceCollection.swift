/// A collection as the app sees it.
public struct ResourceCollection: Sendable, Hashable {
    /// With its query.
    public let uri: String
    /// In the service's order; what was created here comes last, what was deleted here is left out.
    public let items: [Resource]
    /// Of the collection.
    public let etag: String?
    /// It was not asked for now.
    public let isFromCache: Bool
    /// By its expiration policy, or as a push has said.
    public let isExpired: Bool
}
