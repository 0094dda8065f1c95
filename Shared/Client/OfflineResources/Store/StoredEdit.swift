import MobileSync

/// An edit that the backend has not applied yet.
struct StoredEdit: Sendable, Hashable {
    /// The number of the edit; it rises in the order in which edits are made.
    let seq: Int64
    /// The `Idempotency-Key`.
    let id: String
    let uri: ResourceURI
    let kind: EditKind
    let body: [UInt8]
    let contentType: String
    /// The header fields that the caller has added.
    let headers: ResourceHeaders
    let baseTag: String?
    let conflictPolicy: ConflictResolutionPolicy
    let isUnconditional: Bool
    let state: EditState
    let isOffline: Bool
    let status: Int?
    let message: String?

    /// The value of `If-Match`; nil: no condition.
    var condition: String? {
        if kind == .create || isUnconditional { return nil }
        return conflictPolicy == .clientWins ? "*" : baseTag
    }
}

extension StoredEdit {
    /// Whether the edit would change this version of the backend; nil when it cannot be decided.
    func hasEffect(on version: [UInt8]) -> Bool? {
        guard let present = JSONValue.parse(version), let value = JSONValue.parse(body) else {
            return kind == .update ? body != version : nil
        }
        switch kind {
        case .update: return value != present
        case .patch: return present.merged(with: value) != present
        case .create, .delete: return nil
        }
    }
}
