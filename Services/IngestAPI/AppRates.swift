import SyncModel
import Synchronization

/// How many pushes each app sends, so that one that floods leaves the store to the others (reliability SEC8, SEC11).
final class AppRates: Sendable {
    private let perSecond: Int
    private let apps: Mutex<RecentTable<InstanceID, TokenBucket>>

    /// - Parameter perSecond: pushes of one app in a second; four seconds' worth may come at once.
    init(perSecond: Int) {
        self.perSecond = perSecond
        apps = Mutex(RecentTable(keepingFor: .seconds(TokenBucket.savedSeconds), maximum: 65_536))
    }

    /// Counts pushes of one app; false: none of them may go on now. A batch is not divided: what it takes too much is
    /// paid back before the next.
    func take(_ count: Int, of instanceID: InstanceID, at now: ContinuousClock.Instant) -> Bool {
        apps.withLock { apps in
            apps.update(instanceID, at: now, new: TokenBucket(perSecond: perSecond, at: now)) { bucket in
                guard bucket.take(at: now) else { return false }
                for _ in 1..<max(1, count) { _ = bucket.owe(at: now) }
                return true
            }
        }
    }
}
