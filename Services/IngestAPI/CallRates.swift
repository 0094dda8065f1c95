import SyncModel
import Synchronization

/// Counts calls in a second, for each caller that has a limit; at this process alone.
///
/// A full second's calls may come at once; from then on they come back evenly.
final class CallRates: Sendable {
    /// Whether a call is let in, and how its caller stands.
    struct Verdict: Hashable, Sendable {
        /// Nil: it is. Otherwise the seconds, rounded up, after which one would be.
        let waitSeconds: Int?
        let note: RateNote
    }

    private struct Account: Hashable {
        let instanceID: InstanceID
        let keyID: String
    }

    /// Callers that are remembered; those who have all their calls again are forgotten first.
    static let maximumAccounts = 10_000

    private static let second = Duration.seconds(1)

    /// When each caller has all its calls again.
    private let fullAt = Mutex<[Account: ContinuousClock.Instant]>([:])

    /// Counts a call; nil when the caller has no such limit.
    func take(_ caller: APICaller, now: ContinuousClock.Instant = .now) -> Verdict? {
        guard let limit = caller.limits.requestsPerSecond else { return nil }
        let account = Account(instanceID: caller.instanceID, keyID: caller.keyID)
        let share = Duration.nanoseconds(1_000_000_000 / Int64(limit))
        return fullAt.withLock { fullAt in
            let full = max(fullAt[account] ?? now, now)
            let isAllowed = now.duration(to: full) + share <= Self.second
            let next = isAllowed ? full + share : full
            if fullAt[account] == nil, fullAt.count >= Self.maximumAccounts {
                fullAt = fullAt.filter { $0.value > now }
            }
            fullAt[account] = next
            let used = now.duration(to: next)
            let note = RateNote(
                limit: limit, remaining: max(0, Int((Self.second - used) / share)), resetSeconds: Self.seconds(used))
            return Verdict(waitSeconds: isAllowed ? nil : Self.seconds(used + share - Self.second), note: note)
        }
    }

    private static func seconds(_ duration: Duration) -> Int { Int((duration / second).rounded(.up)) }
}
