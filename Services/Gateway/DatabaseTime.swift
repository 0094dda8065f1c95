import BusMessages
import ServiceKit
import SyncModel
import Synchronization

/// The database's time on this gateway: validity goes by it and never by this machine's clock (spec D11).
///
/// Replies of the writers carry it. The first one comes with the first lease, and without a lease nothing is handed out:
/// so wherever a rule looks at the time, the time is known.
final class DatabaseTime: Sendable {
    private let clock: ProcessClock
    private let state: Mutex<DatabaseClock>

    init(clock: ProcessClock) {
        self.clock = clock
        state = Mutex(DatabaseClock(origin: clock.now()))
    }

    /// The time now; before the first reply a time at which nothing has ended.
    var now: WallTime { time(at: clock.now()) }

    /// The time now, as a function.
    var current: @Sendable () -> WallTime {
        return { self.now }
    }

    /// The time at an instant of the process.
    func time(at instant: ContinuousClock.Instant) -> WallTime {
        #if KNOWN_BAD
            if KnownBad.ownClockJudges.isOn { return clock.wallTime() }
        #endif
        return state.withLock { $0.time(at: instant) } ?? WallTime(milliseconds: 0)
    }

    /// Takes the time from the reply to a request.
    ///
    /// - Parameter askedAt: when the request was sent; the reply has just come.
    func observe(_ reply: Mss_Bus_V1_Reply, askedAt: ContinuousClock.Instant) {
        guard reply.databaseTimeMs > 0 else { return }
        let answeredAt = clock.now()
        state.withLock {
            $0.observe(
                WallTime(milliseconds: reply.databaseTimeMs), askedAt: askedAt, answeredAt: answeredAt)
        }
    }

    /// Takes the time from a notice that has just come.
    func observe(_ notice: Mss_Bus_V1_OplogNotice) {
        guard notice.databaseTimeMs > 0 else { return }
        let receivedAt = clock.now()
        state.withLock {
            $0.observe(atLeast: WallTime(milliseconds: notice.databaseTimeMs), receivedAt: receivedAt)
        }
    }
}
