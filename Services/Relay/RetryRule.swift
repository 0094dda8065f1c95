import SyncModel

/// When a call that failed is made again, and when no more; pure.
struct RetryRule: Sendable {
    /// The longest pause between two attempts.
    static let longestPause = Duration.seconds(300)
    /// The longest that a tenant can ask for. The store takes what is longer than its bound for a clock that went back.
    static let longestNamed = Duration.seconds(300)
    /// So many attempts are made, however long an operation has waited behind others.
    static let fewestAttempts = 10

    /// The pause after the first attempt.
    var firstPause: Duration
    /// Given up after so many attempts.
    var attempts: Int
    /// Or after so long since it was taken.
    var age: Duration

    /// The pause after an attempt; nil: it is given up.
    ///
    /// - Parameters:
    ///   - attempt: from 1 on.
    ///   - waited: since it was taken, when the attempt began.
    ///   - named: what the tenant asks for.
    ///   - random: in 0..<1, spreads those that failed together.
    func pause(after attempt: Int, waited: Duration, named: Duration?, random: Double) -> Duration? {
        guard attempt < attempts, attempt < Self.fewestAttempts || waited < age else { return nil }
        var pause = firstPause
        for _ in 1..<min(max(attempt, 1), 30) where pause < Self.longestPause { pause *= 2 }
        pause = min(pause, Self.longestPause) * (0.9 + 0.2 * random)
        return max(pause, min(named ?? .zero, Self.longestNamed))
    }
}
