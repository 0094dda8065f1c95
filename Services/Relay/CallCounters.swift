import Metrics
import SyncModel

/// What calls of tenants came to.
struct CallCounters: Sendable {
    private let accepted = Counter(label: "mss_relay_calls", dimensions: [("outcome", "accepted")])
    private let refused = Counter(label: "mss_relay_calls", dimensions: [("outcome", "refused")])
    private let again = Counter(label: "mss_relay_calls", dimensions: [("outcome", "again")])
    private let dead = Counter(label: "mss_relay_calls", dimensions: [("outcome", "dead")])
    /// Those that were given up, for consoles: reports carry figures without labels alone.
    private let deadLetters = Counter(label: "mss_relay_dead_letters")

    /// Counts one call.
    ///
    /// - Parameter outcome: nil: it is made again.
    func count(_ outcome: DeviceOperationState?) {
        switch outcome {
        case .accepted?: accepted.increment()
        case .refused?: refused.increment()
        case .dead?:
            dead.increment()
            deadLetters.increment()
        case .waiting?, .answered?, nil: again.increment()
        }
    }
}
