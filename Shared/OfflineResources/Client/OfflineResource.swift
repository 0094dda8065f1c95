/// A resource with edits that were made offline and are not settled.
public struct OfflineResource: Sendable, Hashable {
    public let uri: String
    /// As it is now; nil: deleted here.
    public let resource: Resource?
    /// In the order in which they were made.
    public let edits: [Edit]

    /// One edit.
    public struct Edit: Sendable, Hashable {
        public let kind: EditKind
        /// It goes with every attempt in the header `Idempotency-Key`.
        public let id: String
        /// Somebody has to resolve a conflict before it goes on.
        public let isConflict: Bool
        /// The service's HTTP status, when it refused.
        public let status: Int?
        /// What the service said, up to 300 characters.
        public let message: String?
    }
}
