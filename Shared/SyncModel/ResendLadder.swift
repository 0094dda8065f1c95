/// When an oplog that was given out and not confirmed is given out again, and when that ends (spec D14).
///
/// One rule for both sides: a device's library counts what its app was given, a gateway what it sent to a simple client.
package struct ResendLadder: Hashable, Sendable {
    /// What has become of one oplog so far.
    package struct State: Hashable, Sendable {
        /// Steps of the ladder taken, 0 to `Limits.resendRepeats`.
        package let repeats: Int
        /// How often it was given out for any cause: the first time, steps of the ladder, and after restarts.
        package let handOuts: Int

        /// Numbers that no ladder can have reached, from a damaged store, count as the nearest possible.
        package init(repeats: Int, handOuts: Int) {
            self.repeats = min(max(repeats, 0), Limits.resendRepeats)
            self.handOuts = max(handOuts, 0)
        }

        /// Whether it may not be given out again whatever the cause: it may be what ends the app.
        package var isSpent: Bool { handOuts >= Limits.resendHandOuts }
    }

    /// What happens when a wait is over.
    package enum Step: Hashable, Sendable {
        /// It is given out for this, its n-th, time.
        case handOut(attempt: Int)
        /// It is not given out any more.
        case dead(Death)
    }

    /// Why an oplog is given up.
    package enum Death: Hashable, Sendable {
        /// Nobody confirmed it in all the time that the ladder gives.
        case notConfirmed
        /// It was given out as often as `Limits.resendHandOuts` allows, restarts included.
        case handedOutTooOften
    }

    /// The wait after the first hand-out; each later one is twice as long, the last two are the same.
    package let firstWait: Duration

    /// A wait outside of the bounds in `Limits` counts as the nearest within.
    package init(firstWait: Duration = Limits.firstResend) {
        self.firstWait = min(max(firstWait, Limits.shortestFirstResend), Limits.longestFirstResend)
    }

    /// How long to wait after the last hand-out, and what to do then when no confirmation has come.
    package func next(after state: State) -> (wait: Duration, step: Step) {
        let wait = firstWait * (1 << min(state.repeats, Limits.resendRepeats - 1))
        if state.isSpent { return (wait, .dead(.handedOutTooOften)) }
        if state.repeats >= Limits.resendRepeats { return (wait, .dead(.notConfirmed)) }
        return (wait, .handOut(attempt: state.handOuts + 1))
    }
}
