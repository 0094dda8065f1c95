/// How far an edit is; the numbers are in the store.
enum EditState: Int, Sendable, Hashable, CaseIterable {
    /// Never sent.
    case queued = 0
    /// Sent, without an answer so far: the service may have it. It is repeated with the same `Idempotency-Key`.
    case sent = 1
    /// The service has another version; somebody has to decide.
    case conflict = 2
    /// The service refused it.
    case refused = 3

    /// Whether it goes by itself.
    var isWaiting: Bool { self == .queued || self == .sent }
}
