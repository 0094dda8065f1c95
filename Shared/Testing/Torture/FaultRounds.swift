/// The rounds of faults of a torture run, and the times in which the service caught up.
struct FaultRounds: Sendable {
    /// Number of injections of a kind of fault, and the time in which the service caught up.
    struct Injections: Hashable, Sendable {
        var count = 0
        /// The longest time after a round with this kind, including the effect of the other faults of the round.
        var longestLag = Duration.zero
    }

    private(set) var injections: [FaultKind: Injections] = [:]
    /// Times in which the service caught up, by round.
    private(set) var lags: [Duration] = []

    var count: Int { lags.count }

    /// Adds a round and the time in which the service caught up.
    mutating func add(_ round: [FaultSchedule.Planned], lag: Duration) {
        lags.append(lag)
        for fault in round {
            var entry = injections[fault.kind] ?? Injections()
            entry.count += 1
            entry.longestLag = max(entry.longestLag, lag)
            injections[fault.kind] = entry
        }
    }
}
