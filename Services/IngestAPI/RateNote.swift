/// How a caller stands with its limit, for the RateLimit headers of its answers.
struct RateNote: Hashable, Sendable {
    /// Calls or pushes in all.
    var limit: Int
    var remaining: Int
    /// Seconds until all of them are there again.
    var resetSeconds: Int
}
