/// A resource with offline edits that the backend has not applied yet.
public struct OfflineResource: Sendable, Hashable {
    public let uri: String
    /// The local version; nil when it is deleted here.
    public let resource: Resource?
    /// The edits in the order in which they were made.
    public let edits: [Edit]

    /// One edit.
    public struct Edit: Sendable, Hashable {
        public let kind: EditKind
        /// The id of the edit. Every attempt sends it in the header `Idempotency-Key`.
        public let id: String
        /// Whether the edit has a conflict. It is not sent until `ResourceClient.resolveConflict` ends the conflict.
        public let isConflict: Bool
        /// The HTTP status of the backend's refusal; nil when it has not refused the edit.
        public let status: Int?
        /// The start of the refusal's body, at most 300 bytes.
        public let message: String?
    }
}
