/// When to connect again: quickly at first, then with full jitter up to a few seconds; pure.
struct ReconnectSchedule {
    private static let first = Duration.milliseconds(100)
    private static let ceiling = Duration.seconds(3)
    private var failures = 0

    /// The pause before the next attempt.
    ///
    /// - Parameter random: from 0 to below 1.
    mutating func pauseAfterFailure(random: Double) -> Duration {
        let limit = min(Self.ceiling, Self.first * (1 << min(failures, 10)))
        failures += 1
        return limit / 2 + limit / 2 * random
    }

    /// A connection was made and served.
    mutating func succeeded() { failures = 0 }
}
