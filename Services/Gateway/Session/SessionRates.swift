import SyncModel

/// The rates of one device; pure (SEC11).
struct SessionRates: Sendable {
    /// The consequence of a frame.
    enum Verdict: Equatable {
        /// Stop reading for this time; zero: continue.
        case slow(Duration)
        /// Close the connection: the frames that it sent before it was slowed exceed the limit.
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

    /// Charges a frame.
    mutating func charge(_ cost: FrameCost, at now: ContinuousClock.Instant) -> Verdict {
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
