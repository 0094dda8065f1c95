/// The progress of recoveries on one connection, with at most one request in flight. A pure value.
struct RecoveryProgress {
    /// Whether a request is in flight.
    private(set) var isRequesting = false
    /// The time of the next retry; nil when none is planned.
    private(set) var retryAt: ContinuousClock.Instant?
    /// Recoveries that the gateway refused on this connection. The others go first.
    private var refused: Set<LocalRecoveries.Recovery> = []

    /// Allows the refused recoveries again, because the cause of the refusal may be gone.
    mutating func retryRefused() { (retryAt, refused) = (nil, []) }

    /// Returns the first recovery that the gateway has not refused. Its request is then in flight.
    mutating func next(of open: [LocalRecoveries.Recovery]) -> LocalRecoveries.Recovery? {
        guard let recovery = open.first(where: { !refused.contains($0) }) else { return nil }
        isRequesting = true
        return recovery
    }

    /// Records that the request has its reply, or that none will arrive.
    mutating func answered() { isRequesting = false }

    /// Records that the gateway has refused a recovery.
    mutating func refuse(_ recovery: LocalRecoveries.Recovery) { refused.insert(recovery) }

    /// Plans a retry.
    mutating func retry(at time: ContinuousClock.Instant) { retryAt = time }
}
