/// A token bucket: saved tokens allow a burst, after which the rate applies; pure.
package struct TokenBucket: Sendable {
    /// The capacity in seconds of the rate. It allows a legitimate burst, for example when the devices of an office
    /// reconnect together.
    package static let savedSeconds = 4.0

    /// The tokens of a full bucket. A new bucket is full.
    private let capacity: Double
    private let rate: Double
    private var tokens: Double
    private var filledAt: ContinuousClock.Instant

    /// - Parameter rate: tokens per second, above 0.
    package init(perSecond rate: Int, at now: ContinuousClock.Instant) {
        self.rate = Double(rate)
        capacity = Double(rate) * Self.savedSeconds
        tokens = capacity
        filledAt = now
    }

    /// Consumes a token; false when there is none.
    package mutating func consume(at now: ContinuousClock.Instant) -> Bool {
        fill(at: now)
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }

    /// Consumes a token even when there is none, for an event that has already happened.
    ///
    /// - Returns: the time until the debt is paid; at most `savedSeconds`.
    package mutating func owe(at now: ContinuousClock.Instant) -> Duration {
        fill(at: now)
        tokens = max(tokens - 1, -capacity)
        return tokens >= 0 ? .zero : .seconds(-tokens / rate)
    }

    /// Whether the debt has reached the capacity, so that delays alone did not help.
    package var isExhausted: Bool { tokens <= -capacity }

    private mutating func fill(at now: ContinuousClock.Instant) {
        guard now > filledAt else { return }
        tokens = min(capacity, tokens + rate * (filledAt.duration(to: now) / .seconds(1)))
        filledAt = now
    }
}
