package import BusMessages
package import SyncModel
import Synchronization

/// The database's time in this process: validity and the deadlines of commands go by it, and never by this machine's
/// clock (spec D11).
///
/// Replies of the writers carry it. To a gateway the first one comes with the first lease, and without a lease nothing
/// is handed out: so wherever a rule looks at the time, the time is known.
package final class SharedDatabaseClock: Sendable {
    private let clock: ProcessClock
    private let state: Mutex<DatabaseClock>

    package init(clock: ProcessClock) {
        self.clock = clock
        state = Mutex(DatabaseClock(origin: clock.now()))
    }

    /// This instant of the process.
    var instant: ContinuousClock.Instant { clock.now() }

    /// The time now; before the first reply a time at which nothing has ended.
    package var now: WallTime { time(at: clock.now()) ?? WallTime(milliseconds: 0) }

    /// The time now, as a function.
    package var current: @Sendable () -> WallTime {
        return { self.now }
    }

    /// The time at an instant of the process; nil before the first reply.
    package func time(at instant: ContinuousClock.Instant) -> WallTime? {
        #if KNOWN_BAD
            if KnownBad.ownClockJudges.isOn { return clock.wallTime() }
        #endif
        return state.withLock { $0.time(at: instant) }
    }

    /// Takes the time that the database told after this instant; the answer has just come.
    package func observe(_ time: WallTime, askedAt: ContinuousClock.Instant) {
        guard time.milliseconds > 0 else { return }
        let answeredAt = clock.now()
        state.withLock { $0.observe(time, askedAt: askedAt, answeredAt: answeredAt) }
    }

    /// Takes the time from a notice that has just come.
    package func observe(_ notice: Mss_Bus_V1_OplogNotice) {
        guard notice.databaseTimeMs > 0 else { return }
        let receivedAt = clock.now()
        state.withLock {
            $0.observe(atLeast: WallTime(milliseconds: notice.databaseTimeMs), receivedAt: receivedAt)
        }
    }
}
