import SyncModel

/// Decides when a failed call is retried, and when the operation becomes dead; pure.
struct RetryRule: Sendable {
    /// The longest pause between two attempts.
    static let longestPause = Duration.seconds(300)
    /// The longest pause that a tenant can request. The store treats a longer pause as the effect of a clock that was
    /// set back.
    static let longestNamed = Duration.seconds(300)
    /// At least so many attempts are made, even if the operation has waited longer than `age`.
    static let fewestAttempts = 10

    /// The pause after the first attempt.
    var firstPause: Duration
    /// The operation is dead after so many attempts.
    var attempts: Int
    /// The operation is dead after so long since it was stored.
    var age: Duration

    /// The pause after an attempt; nil: the operation is dead.
    ///
    /// - Parameters:
    ///   - attempt: from 1 on.
    ///   - waited: the time from the storage of the operation to the beginning of the attempt.
    ///   - named: the pause that the tenant requests.
    ///   - random: in 0..<1; spreads the retries of calls that failed together.
    func pause(after attempt: Int, waited: Duration, named: Duration?, random: Double) -> Duration? {
        guard attempt < attempts, attempt < Self.fewestAttempts || waited < age else { return nil }
        var pause = firstPause
        for _ in 1..<min(max(attempt, 1), 30) where pause < Self.longestPause { pause *= 2 }
        pause = min(pause, Self.longestPause) * (0.9 + 0.2 * random)
        return max(pause, min(named ?? .zero, Self.longestNamed))
    }
}
