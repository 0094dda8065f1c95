/// How much the calls of a key, or those of an instance without a key, may ask for.
package struct KeyLimits: Hashable, Sendable {
    /// API calls in a second at each ingest; nil: no limit.
    package var requestsPerSecond: Int?
    /// Pushes from midnight to midnight (UTC), counted over all ingests; nil: no limit.
    package var pushesPerDay: Int?

    /// What a limit of calls may be; 0 stands for none.
    package static let calls = 0...1_000_000
    /// What a limit of pushes may be; 0 stands for none.
    package static let pushes = 0...1_000_000_000_000

    /// What is wrong with them; nil when nothing is.
    package var fault: String? {
        Self.calls.contains(requestsPerSecond ?? 0) && Self.pushes.contains(pushesPerDay ?? 0)
            ? nil
            : "limits are at most \(Self.calls.upperBound) calls in a second, \(Self.pushes.upperBound) pushes a day"
    }

    package init(requestsPerSecond: Int? = nil, pushesPerDay: Int? = nil) {
        self.requestsPerSecond = requestsPerSecond
        self.pushesPerDay = pushesPerDay
    }
}
