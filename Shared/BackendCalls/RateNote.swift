/// How a caller stands with its limit, for the RateLimit headers of its answers.
package struct RateNote: Hashable, Sendable {
    /// Calls or pushes in all.
    package var limit: Int
    package var remaining: Int
    /// Seconds until all of them are there again.
    package var resetSeconds: Int

    package init(limit: Int, remaining: Int, resetSeconds: Int) {
        self.limit = limit
        self.remaining = remaining
        self.resetSeconds = resetSeconds
    }
}
