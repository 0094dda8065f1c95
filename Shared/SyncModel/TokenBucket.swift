/// How often something may happen: what was saved up allows a burst, after it the rate holds; pure.
package struct TokenBucket: Sendable {
    /// What a bucket saves up at the most, in seconds of its rate: room for what honestly comes together, such as the
    /// devices of an office after its network was away.
    package static let savedSeconds = 4.0

    /// Tokens of a full bucket, which is how a new one begins.
    private let capacity: Double
    private let rate: Double
    private var tokens: Double
    private var filledAt: ContinuousClock.Instant

    /// - Parameter rate: tokens that come in a second, above 0.
    package init(perSecond rate: Int, at now: ContinuousClock.Instant) {
        self.rate = Double(rate)
        capacity = Double(rate) * Self.savedSeconds
        tokens = capacity
        filledAt = now
    }

    /// Takes a token; false when there is none.
    package mutating func take(at now: ContinuousClock.Instant) -> Bool {
        fill(at: now)
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }

    /// Takes a token whether there is one or not, for what has happened already.
    ///
    /// - Returns: how long it takes until nothing is owed; at most `savedSeconds`.
    package mutating func owe(at now: ContinuousClock.Instant) -> Duration {
        fill(at: now)
        tokens = max(tokens - 1, -capacity)
        return tokens >= 0 ? .zero : .seconds(-tokens / rate)
    }

    /// Whether as much is owed as a bucket holds: slowing down has not helped.
    package var isExhausted: Bool { tokens <= -capacity }

    private mutating func fill(at now: ContinuousClock.Instant) {
        guard now > filledAt else { return }
        tokens = min(capacity, tokens + rate * (filledAt.duration(to: now) / .seconds(1)))
        filledAt = now
    }
}
