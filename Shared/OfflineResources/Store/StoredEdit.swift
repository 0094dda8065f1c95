/// An edit that the service has not taken yet.
struct StoredEdit: Sendable, Hashable {
    /// Rises in the order in which edits are made.
    let seq: Int64
    /// The `Idempotency-Key`.
    let id: String
    let uri: ResourceURI
    let kind: EditKind
    let body: [UInt8]
    let contentType: String
    let baseTag: String?
    let conflictPolicy: ConflictResolutionPolicy
    let isUnconditional: Bool
    let state: EditState
    let isOffline: Bool
    let status: Int?
    let message: String?

    /// What it is sent with in `If-Match`; nil: without.
    var condition: String? {
        if kind == .create || isUnconditional { return nil }
        return conflictPolicy == .clientWins ? "*" : baseTag
    }
}

extension StoredEdit {
    /// Whether a version of the service's would be another one after this edit; nil: it cannot be told.
    func hasEffect(on version: [UInt8]) -> Bool? {
        guard let present = ResourceValue.parse(version), let value = ResourceValue.parse(body) else {
            return kind == .update ? body != version : nil
        }
        switch kind {
        case .update: return value != present
        case .patch: return present.merged(with: value) != present
        case .create, .delete: return nil
        }
    }
}
