import DeliveryHistory
import Synchronization

/// What a socket must not be sent any more, for the devices that look at single frames.
final class TorturePushLedger: Sendable {
    /// The end of a push.
    struct End: Sendable {
        /// When its recall was answered with success, since the run's beginning.
        var recalledAt: Duration?
        /// When its validity ends.
        var validUntil: Duration?
    }

    private struct State {
        var ends: [String: End] = [:]
        var isDatabaseClockRight = true
    }

    private let state = Mutex(State())

    /// A push begins that has an end.
    func began(_ push: String, validUntil: Duration) {
        state.withLock { state in
            guard state.isDatabaseClockRight else { return }
            state.ends[push, default: End()].validUntil = validUntil
        }
    }

    /// A recall was answered with success.
    func recalled(_ push: String, at now: Duration) {
        state.withLock { $0.ends[push, default: End()].recalledAt = now }
    }

    /// The database's clock is set wrong, or is right again. What is valid while it is wrong may end at any time.
    func databaseClock(isRight: Bool) {
        state.withLock { state in
            state.isDatabaseClockRight = isRight
            guard !isRight else { return }
            for push in Array(state.ends.keys) { state.ends[push]?.validUntil = nil }
        }
    }

    /// The end of a push; nil: nothing is known of one.
    func end(of push: String) -> End? { state.withLock { $0.ends[push] } }
}
