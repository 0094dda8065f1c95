/// A new edit before it is stored.
struct EditDraft: Sendable, Hashable {
    /// The random id of the edit: its `Idempotency-Key`.
    let id: String
    let uri: ResourceURI
    let kind: EditKind
    let body: [UInt8]
    let contentType: String
    let policy: EffectivePolicy
    /// Whether the caller does not wait for the backend.
    let isOffline: Bool
}
