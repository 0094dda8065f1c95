/// Follows the database's clock by its replies, on a clock that nobody sets; pure (spec D11).
///
/// The database read its clock between the moment at which the process sent a request and the moment at which the reply
/// came. Each reply so bounds the offset between the two clocks, and the bounds of all replies together are at most as
/// wide as the quickest round trip. The estimate moves only as far as new bounds force it. A reply that contradicts the
/// bounds says that the clock was set, or that another server answers: the estimate then begins anew.
package struct DatabaseClock: Sendable {
    /// The bounds of the offset: civil time since 1970 less the time since `origin`.
    private struct Bounds {
        var low: Duration
        var high: Duration
        /// The newest reply that they are from.
        var asOf: ContinuousClock.Instant

        var middle: Duration { (low + high) / 2 }

        /// The bounds at a later instant: the clocks may run apart by 500 millionths.
        func widened(at instant: ContinuousClock.Instant) -> Bounds {
            let drift = max(.zero, asOf.duration(to: instant)) / 2_000
            return Bounds(low: low - drift, high: high + drift, asOf: asOf)
        }
    }

    /// How late a message without a question may be that shows that the clock was set forward.
    private static let messageDelay = Duration.seconds(1)

    private let origin: ContinuousClock.Instant
    private var bounds: Bounds?
    private var estimate = Duration.zero

    /// - Parameter origin: any instant of the process; it only keeps the numbers small.
    package init(origin: ContinuousClock.Instant) { self.origin = origin }

    /// Takes the database's time from a reply.
    ///
    /// - Parameters:
    ///   - time: read by the database between the two instants.
    ///   - askedAt: the request was sent.
    ///   - answeredAt: the reply was here.
    package mutating func observe(
        _ time: WallTime, askedAt: ContinuousClock.Instant, answeredAt: ContinuousClock.Instant
    ) {
        // Whole milliseconds, rounded down.
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

    /// Takes the database's time from a message that answers no request: the clock shows at least this by now. Without
    /// a reply before it the message says nothing.
    package mutating func observe(atLeast time: WallTime, receivedAt: ContinuousClock.Instant) {
        guard let held = bounds?.widened(at: receivedAt) else { return }
        let low = Duration.milliseconds(time.milliseconds) - origin.duration(to: receivedAt)
        if low > held.high {
            begin(Bounds(low: low, high: low + Self.messageDelay, asOf: receivedAt))
        } else if low > held.low {
            keep(Bounds(low: low, high: held.high, asOf: max(held.asOf, receivedAt)))
        }
    }

    /// The database's time at an instant; nil before the first reply.
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
