import SyncModel

/// How much one device sends; pure (reliability SEC11).
struct SessionRates: Sendable {
    /// What follows from a frame.
    enum Verdict: Equatable {
        /// Nothing is read for so long; zero: go on.
        case slow(Duration)
        /// It is closed: what it had sent before it was slowed is too much by itself.
        case flood
    }

    private var frames: TokenBucket
    private var requests: TokenBucket
    private var changes: TokenBucket

    init(limits: AdmissionLimits, now: ContinuousClock.Instant) {
        frames = TokenBucket(perSecond: limits.deviceFrames, at: now)
        requests = TokenBucket(perSecond: limits.deviceRequests, at: now)
        changes = TokenBucket(perSecond: limits.deviceChanges, at: now)
    }

    /// A frame came in.
    mutating func took(_ cost: FrameCost, at now: ContinuousClock.Instant) -> Verdict {
        var wait = frames.owe(at: now)
        var isFlood = frames.isExhausted
        switch cost {
        case .plain: break
        case .request:
            wait = max(wait, requests.owe(at: now))
            isFlood = isFlood || requests.isExhausted
        case .change:
            wait = max(wait, changes.owe(at: now))
            isFlood = isFlood || changes.isExhausted
        }
        return isFlood ? .flood : .slow(wait)
    }
}
