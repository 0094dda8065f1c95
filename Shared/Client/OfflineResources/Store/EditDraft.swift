/// A new edit before it is stored.
struct EditDraft: Sendable, Hashable {
    /// The random id of the edit: its `Idempotency-Key`.
    let id: String
    let uri: ResourceURI
    let kind: EditKind
    let body: [UInt8]
    let contentType: String
    /// The header fields that the caller adds.
    let headers: ResourceHeaders
    let policy: EffectivePolicy
    /// The kind of the resource when there is no local copy.
    var resourceKind: ResourceKind { ResourceKind(contentType: contentType) }
    /// Whether the caller does not wait for the backend.
    let isOffline: Bool
}
