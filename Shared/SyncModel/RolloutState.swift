/// Where a staged roll-out of a global push stands.
package enum RolloutState: Int16, Hashable, Sendable, CaseIterable {
    /// The next stage comes by time or by hand.
    case running = 1
    /// No stage is made until it is resumed; the clock stands.
    case paused = 2
    /// Ended before its time; what it had made was recalled where it had not arrived.
    case stopped = 3
    /// Every stage was made.
    case completed = 4

    /// The state in commands and in the API.
    package var word: String {
        switch self {
        case .running: "running"
        case .paused: "paused"
        case .stopped: "stopped"
        case .completed: "completed"
        }
    }
}
