/// The meaning of the backend's response to an edit (RES4).
enum EditVerdict: Sendable, Hashable, CaseIterable {
    /// The backend has applied the edit.
    case applied
    /// The backend has another version, or none. The app gets both versions.
    case conflict
    /// The backend has another version, or none, and its version wins.
    case dropped
    /// The backend has no version and the edit wins: it is sent again without a condition.
    case sendUnconditionally
    /// The backend does not accept the edit; a repeat is useless.
    case refused
    /// The credentials are missing or invalid: the edit waits until the app has new credentials.
    case signInNeeded
    /// The backend is temporarily unavailable.
    case later

    /// Whether the status is temporary and says nothing about the request, which is then repeated.
    static func isPassing(_ status: Int) -> Bool { [408, 425, 429, 502, 503, 504].contains(status) }

    /// - Parameter isUnconditional: the edit was sent without `If-Match` on purpose.
    init(status: Int, kind: EditKind, policy: ConflictResolutionPolicy, isUnconditional: Bool) {
        let isGone = status == 404 || status == 410
        switch (status, kind) {
        case (200...299, _): self = .applied
        case (401, _): self = .signInNeeded
        case _ where Self.isPassing(status): self = .later
        case (_, .delete) where isGone: self = .applied
        // `If-Match: *` fails only when the resource does not exist.
        case (412, .delete) where policy == .clientWins: self = .applied
        case (412, .update), (412, .patch), (412, .delete),
            (_, .update) where isGone, (_, .patch) where isGone:
            switch policy {
            case _ where isUnconditional: self = .refused
            case .preserveConflict: self = .conflict
            case .serverWins: self = .dropped
            case .clientWins: self = kind == .update ? .sendUnconditionally : .refused
            }
        default: self = .refused
        }
    }
}
