import DeliveryHistory
import Synchronization

/// The ends of pushes, for devices that check single frames: after its end a push must not be sent.
final class TorturePushLedger: Sendable {
    /// The end of a push.
    struct End: Sendable {
        /// Time of the success response to the recall, since the start of the run.
        var recalledAt: Duration?
        /// End of validity, since the start of the run.
        var validUntil: Duration?
    }

    private struct State {
        var ends: [String: End] = [:]
        var isDatabaseClockRight = true
    }

    private let state = Mutex(State())

    /// Records the end of validity of a new push.
    func began(_ push: String, validUntil: Duration) {
        state.withLock { state in
            guard state.isDatabaseClockRight else { return }
            state.ends[push, default: End()].validUntil = validUntil
        }
    }

    /// Records the success response to a recall.
    func recalled(_ push: String, at now: Duration) {
        state.withLock { $0.ends[push, default: End()].recalledAt = now }
    }

    /// Records whether the database clock is correct. While it is wrong, a push can expire at any time.
    func databaseClock(isRight: Bool) {
        state.withLock { state in
            state.isDatabaseClockRight = isRight
            guard !isRight else { return }
            for push in Array(state.ends.keys) { state.ends[push]?.validUntil = nil }
        }
    }

    /// The end of a push. The value is nil if none is known.
    func end(of push: String) -> End? { state.withLock { $0.ends[push] } }
}
