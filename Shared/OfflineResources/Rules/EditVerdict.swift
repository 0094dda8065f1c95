/// What a service's answer to an edit means (spec, two-way §1).
enum EditVerdict: Sendable, Hashable, CaseIterable {
    /// The service has it.
    case applied
    /// The service has another version, or none: both are shown.
    case conflict
    /// The same, and the service wins.
    case dropped
    /// The service has none, and the edit wins: it is sent once more without a condition.
    case sendUnconditionally
    /// The service will never take it as it is.
    case refused
    /// Nobody is signed in: it waits until the app has new credentials.
    case signInNeeded
    /// The service does not answer now.
    case later

    /// Answers that say nothing of the request: it is tried again.
    static func isPassing(_ status: Int) -> Bool { [408, 425, 429, 502, 503, 504].contains(status) }

    /// - Parameter isUnconditional: it was sent without `If-Match` on purpose.
    init(status: Int, kind: EditKind, policy: ConflictResolutionPolicy, isUnconditional: Bool) {
        let isGone = status == 404 || status == 410
        switch (status, kind) {
        case (200...299, _): self = .applied
        case (401, _): self = .signInNeeded
        case _ where Self.isPassing(status): self = .later
        case (_, .delete) where isGone: self = .applied
        // Against `If-Match: *` only nothing stands.
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
