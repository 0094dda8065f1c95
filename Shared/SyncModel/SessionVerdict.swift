/// What the tenant said of a session; unknown withholds, it never lets through (spec V4).
package enum SessionVerdict: Hashable, Sendable {
    /// Not asked, or no answer that counts.
    case unknown
    /// Valid until the instant given, on the holder's own monotonic clock.
    case valid(until: ContinuousClock.Instant)
    case invalid

    /// Whether checked data may go out at this instant (spec D16).
    package func allowsDelivery(at now: ContinuousClock.Instant) -> Bool {
        if case .valid(let until) = self { return now < until }
        return false
    }
}
