import BackendCalls
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

    /// Callers that are remembered; those who have all their calls again are forgotten first.
    static let maximumAccounts = 10_000

    private static let second = Duration.seconds(1)

    /// When each caller has all its calls again.
    private let fullAt = Mutex<[APICaller.Account: ContinuousClock.Instant]>([:])

    /// Counts a call; nil when the caller has no such limit.
    func take(_ caller: APICaller, now: ContinuousClock.Instant = .now) -> Verdict? {
        guard let limit = caller.limits.requestsPerSecond else { return nil }
        let account = caller.account
        let share = Self.share(limit)
        return fullAt.withLock { fullAt in
            let full = max(fullAt[account] ?? now, now)
            let isAllowed = now.duration(to: full) + share <= Self.second
            let next = isAllowed ? full + share : full
            if fullAt[account] == nil, fullAt.count >= Self.maximumAccounts {
                fullAt = fullAt.filter { $0.value > now }
            }
            fullAt[account] = next
            let used = now.duration(to: next)
            return Verdict(
                waitSeconds: isAllowed ? nil : Self.seconds(used + share - Self.second), note: Self.note(limit, used))
        }
    }

    /// Takes a counted call back that was not the caller's own; nil when the caller has no such limit.
    func giveBack(_ caller: APICaller, now: ContinuousClock.Instant = .now) -> RateNote? {
        guard let limit = caller.limits.requestsPerSecond else { return nil }
        return fullAt.withLock { fullAt in
            let full = max((fullAt[caller.account] ?? now) - Self.share(limit), now)
            fullAt[caller.account] = full
            return Self.note(limit, now.duration(to: full))
        }
    }

    /// What a call costs of the second.
    private static func share(_ limit: Int) -> Duration { .nanoseconds(1_000_000_000 / Int64(limit)) }

    private static func note(_ limit: Int, _ used: Duration) -> RateNote {
        RateNote(
            limit: limit, remaining: max(0, Int((second - used) / share(limit))), resetSeconds: seconds(used))
    }

    private static func seconds(_ duration: Duration) -> Int { Int((duration / second).rounded(.up)) }
}
