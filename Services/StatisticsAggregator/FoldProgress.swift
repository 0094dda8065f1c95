import SyncModel

/// The time up to which the figures contain everything, as far as one aggregator can know; pure.
struct FoldProgress {
    /// The time up to which facts are folded. It may fall, because late facts can still arrive.
    private var foldedUpto: WallTime?
    /// The time up to which stored pushes are counted.
    private var countedUpto: WallTime?
    private var wasIdle = false

    /// The earlier of both times; nil until both are known.
    var upto: WallTime? {
        guard let foldedUpto, let countedUpto else { return nil }
        return min(foldedUpto, countedUpto)
    }

    /// Records that a batch of facts is folded.
    ///
    /// - Parameter newest: the newest time of its facts; nil: no fact names one.
    mutating func folded(newest: WallTime?) {
        wasIdle = false
        if let newest { foldedUpto = newest }
    }

    /// Records that stored pushes are counted.
    ///
    /// - Parameter time: if the reading found all stored pushes, the time when it began; otherwise the time at which
    ///   the newest of them was stored.
    mutating func read(upto time: WallTime) { countedUpto = time }

    /// Records a regular check of the queue. If nothing waits in two consecutive checks, all facts sent before are
    /// folded. One check is not enough, since a broker that has just reconnected may not have delivered the waiting
    /// facts.
    ///
    /// - Parameter isIdle: the broker is connected, and every delivered fact is folded.
    mutating func checked(isIdle: Bool, at now: WallTime) {
        if isIdle, wasIdle { foldedUpto = now }
        wasIdle = isIdle
    }

    /// The delay of the figures in seconds; nil until it is known.
    func lag(at now: WallTime) -> Double? {
        upto.map { Double(max(0, now.milliseconds - $0.milliseconds)) / 1_000 }
    }
}
