/// How much the calls of a key, or those of an instance without a key, may ask for.
package struct KeyLimits: Hashable, Sendable {
    /// API calls in a second at each ingest; nil: no limit.
    package var requestsPerSecond: Int?
    /// Pushes from midnight to midnight (UTC), counted over all ingests; nil: no limit.
    package var pushesPerDay: Int?

    package init(requestsPerSecond: Int? = nil, pushesPerDay: Int? = nil) {
        self.requestsPerSecond = requestsPerSecond
        self.pushesPerDay = pushesPerDay
    }
}
