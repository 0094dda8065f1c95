/// Finds a step of a load run in which no event occurs for too long.
struct InactivityTimer {
    /// A waiting step ends as incomplete after this many seconds without an event.
    private static let limitSeconds = 15

    private var events = 0
    /// Number of events at the last check.
    private var seenEvents = 0
    private var quietSeconds = 0

    /// Starts again for a new step.
    mutating func restart() { (seenEvents, quietSeconds) = (0, 0) }

    mutating func recordEvent() { events += 1 }

    /// Records that the step does not only wait for events.
    mutating func recordActivity() { quietSeconds = 0 }

    /// Records a second in which the step only waits for events.
    mutating func recordWaitingSecond() {
        quietSeconds = seenEvents == events ? quietSeconds + 1 : 0
        seenEvents = events
    }

    /// Whether the step must end as incomplete.
    var isExpired: Bool { quietSeconds >= Self.limitSeconds }
}
