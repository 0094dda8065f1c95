/// An edit as it is made.
struct EditDraft: Sendable, Hashable {
    /// Chosen at random: its `Idempotency-Key`.
    let id: String
    let uri: ResourceURI
    let kind: EditKind
    let body: [UInt8]
    let contentType: String
    let policy: EffectivePolicy
    /// Its caller does not wait for the service.
    let isOffline: Bool
}
