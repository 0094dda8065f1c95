/// How long to wait before the database is tried again: doubling, bounded, jittered; pure.
struct RetryPauses {
    private static let first = Duration.milliseconds(100)
    private static let longest = Duration.seconds(5)

    private var pause = first

    /// The pause after one more failure, between half and all of 100 ms, 200 ms, … 5 s.
    ///
    /// - Parameter random: from 0 to 1.
    mutating func next(random: Double) -> Duration {
        defer { pause = min(pause * 2, Self.longest) }
        return pause * (0.5 + 0.5 * random)
    }

    /// It worked: the next failure starts over.
    mutating func reset() { pause = Self.first }
}
