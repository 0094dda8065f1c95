/// The state of an edit. The numbers are stored.
enum EditState: Int, Sendable, Hashable, CaseIterable {
    /// Never sent.
    case queued = 0
    /// Sent without a response: the backend may have it. It is repeated with the same `Idempotency-Key`.
    case sent = 1
    /// The backend has another version; the app must resolve the conflict.
    case conflict = 2
    /// The backend refused the edit.
    case refused = 3

    /// Whether the client sends the edit without a decision of the app.
    var isWaiting: Bool { self == .queued || self == .sent }
}
