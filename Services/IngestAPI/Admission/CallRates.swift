import BackendCalls
import SyncModel
import Synchronization

/// Limits the calls per second of each caller that has a limit. The limit holds for this process alone.
///
/// A caller can use a whole second's calls at once; the limiter restores them at an even rate.
final class CallRates: Sendable {
    /// The decision on a call, with the caller's limit.
    struct Outcome: Hashable, Sendable {
        /// A nil value means: the call is admitted. Otherwise the seconds, rounded up, until the next call can be
        /// admitted.
        let waitSeconds: Int?
        let status: RateLimitStatus
    }

    /// Accounts in memory; above it, the accounts that have all their calls again are removed.
    static let maximumAccounts = 10_000

    private static let second = Duration.seconds(1)

    /// The time at which each caller has all its calls again.
    private let fullAt = Mutex<[APICaller.Account: ContinuousClock.Instant]>([:])

    /// Counts a call; nil when the caller has no limit per second.
    func charge(_ caller: APICaller, now: ContinuousClock.Instant = .now) -> Outcome? {
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
            return Outcome(
                waitSeconds: isAllowed ? nil : Self.seconds(used + share - Self.second),
                status: Self.status(limit, used))
        }
    }

    /// Reverses the count of a call that the caller did not make; nil when the caller has no limit per second.
    func refund(_ caller: APICaller, now: ContinuousClock.Instant = .now) -> RateLimitStatus? {
        guard let limit = caller.limits.requestsPerSecond else { return nil }
        return fullAt.withLock { fullAt in
            let full = max((fullAt[caller.account] ?? now) - Self.share(limit), now)
            fullAt[caller.account] = full
            return Self.status(limit, now.duration(to: full))
        }
    }

    /// The part of a second that one call uses.
    private static func share(_ limit: Int) -> Duration { .nanoseconds(1_000_000_000 / Int64(limit)) }

    private static func status(_ limit: Int, _ used: Duration) -> RateLimitStatus {
        RateLimitStatus(
            limit: limit, remaining: max(0, Int((second - used) / share(limit))), resetSeconds: seconds(used))
    }

    private static func seconds(_ duration: Duration) -> Int { Int((duration / second).rounded(.up)) }
}
