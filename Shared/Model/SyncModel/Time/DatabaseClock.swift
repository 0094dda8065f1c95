/// Computes the database time on a steady clock from the times in replies; pure (D11).
///
/// The database reads its clock between the request and the reply. So each reply bounds the offset between both clocks.
/// All bounds together are no wider than the shortest round trip. The estimate changes only as far as new bounds
/// require. A reply that contradicts the bounds shows that the clock was set or that another server replied; then the
/// estimate starts again.
package struct DatabaseClock: Sendable {
    /// Bounds of the offset: database time since 1970 minus time since `origin`.
    private struct Bounds {
        var low: Duration
        var high: Duration
        /// The instant of the newest reply in the bounds.
        var asOf: ContinuousClock.Instant

        var middle: Duration { (low + high) / 2 }

        /// The bounds at a later instant. The clocks may drift by 500 ppm.
        func widened(at instant: ContinuousClock.Instant) -> Bounds {
            let drift = max(.zero, asOf.duration(to: instant)) / 2_000
            return Bounds(low: low - drift, high: high + drift, asOf: asOf)
        }
    }

    /// The largest assumed delay of a notice, when it shows that the clock was set forward.
    private static let messageDelay = Duration.seconds(1)

    private let origin: ContinuousClock.Instant
    private var bounds: Bounds?
    private var estimate = Duration.zero

    /// - Parameter origin: any instant of the process; it keeps the numbers small.
    package init(origin: ContinuousClock.Instant) { self.origin = origin }

    /// Updates the bounds from a reply.
    ///
    /// - Parameters:
    ///   - time: the database time between the two instants.
    ///   - askedAt: when the request was sent.
    ///   - answeredAt: when the reply arrived.
    package mutating func observe(
        _ time: WallTime, askedAt: ContinuousClock.Instant, answeredAt: ContinuousClock.Instant
    ) {
        // `time` is rounded down to whole milliseconds.
        let sample = Bounds(
            low: .milliseconds(time.milliseconds) - origin.duration(to: answeredAt),
            high: .milliseconds(time.milliseconds + 1) - origin.duration(to: askedAt), asOf: answeredAt)
        guard let held = bounds?.widened(at: answeredAt), held.low <= sample.high, sample.low <= held.high else {
            return begin(sample)
        }
        keep(
            Bounds(
                low: max(held.low, sample.low), high: min(held.high, sample.high), asOf: max(held.asOf, answeredAt)))
    }

    /// Updates the bounds from a message that is not a reply: the database time is at least this. Ignored before the
    /// first reply.
    package mutating func observe(atLeast time: WallTime, receivedAt: ContinuousClock.Instant) {
        guard let held = bounds?.widened(at: receivedAt) else { return }
        let low = Duration.milliseconds(time.milliseconds) - origin.duration(to: receivedAt)
        if low > held.high {
            begin(Bounds(low: low, high: low + Self.messageDelay, asOf: receivedAt))
        } else if low > held.low {
            keep(Bounds(low: low, high: held.high, asOf: max(held.asOf, receivedAt)))
        }
    }

    /// The database time at an instant; nil before the first reply.
    package func time(at instant: ContinuousClock.Instant) -> WallTime? {
        guard bounds != nil else { return nil }
        return WallTime(milliseconds: (origin.duration(to: instant) + estimate).wholeMilliseconds)
    }

    private mutating func begin(_ new: Bounds) {
        bounds = new
        estimate = new.middle
    }

    private mutating func keep(_ new: Bounds) {
        bounds = new
        estimate = min(max(estimate, new.low), new.high)
    }
}
