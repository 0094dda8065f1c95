package import BusMessages
package import SyncModel
import Synchronization

/// The database time in this process. Validity and the deadlines of commands use it, never this machine's clock (D11).
///
/// Replies of the writers carry it. A gateway gets its first reply with its first lease, and sends no data without a
/// lease. So the time is known wherever a rule reads it.
package final class SharedDatabaseClock: Sendable {
    private let clock: ProcessClock
    private let state: Mutex<DatabaseClock>

    package init(clock: ProcessClock) {
        self.clock = clock
        state = Mutex(DatabaseClock(origin: clock.now()))
    }

    /// The process's steady clock now.
    var instant: ContinuousClock.Instant { clock.now() }

    /// The database time now; 0 before the first reply, so that nothing has ended.
    package var now: WallTime { time(at: clock.now()) ?? WallTime(milliseconds: 0) }

    /// `now` as a function.
    package var current: @Sendable () -> WallTime {
        return { self.now }
    }

    /// The database time at an instant of the steady clock; nil before the first reply.
    package func time(at instant: ContinuousClock.Instant) -> WallTime? {
        state.withLock { $0.time(at: instant) }
    }

    /// Updates the clock from a reply that has just arrived.
    ///
    /// - Parameter askedAt: when the request was sent.
    package func observe(_ time: WallTime, askedAt: ContinuousClock.Instant) {
        guard time.milliseconds > 0 else { return }
        let answeredAt = clock.now()
        state.withLock { $0.observe(time, askedAt: askedAt, answeredAt: answeredAt) }
    }

    /// Updates the clock from a notice that has just arrived.
    package func observe(_ notice: Mss_Bus_V1_OplogNotice) {
        guard notice.databaseTimeMs > 0 else { return }
        let receivedAt = clock.now()
        state.withLock {
            $0.observe(atLeast: WallTime(milliseconds: notice.databaseTimeMs), receivedAt: receivedAt)
        }
    }
}
