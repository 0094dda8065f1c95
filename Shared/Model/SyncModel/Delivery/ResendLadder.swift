/// The times of resends of an unconfirmed oplog, and their end (D14).
///
/// Both sides use the same rule: a client library for hand-outs to its app, a gateway for batches to a simple client.
package struct ResendLadder: Hashable, Sendable {
    /// The progress of one oplog.
    package struct State: Hashable, Sendable {
        /// Resends by the ladder, 0 to `Limits.resendRepeats`.
        package let repeats: Int
        /// Hand-outs for any cause: the first one, resends, and after restarts.
        package let handOuts: Int

        /// Impossible values, for example from a damaged store, are clamped.
        package init(repeats: Int, handOuts: Int) {
            self.repeats = min(max(repeats, 0), Limits.resendRepeats)
            self.handOuts = max(handOuts, 0)
        }

        /// Whether no further hand-out is allowed for any cause, because this oplog may crash the app.
        package var isSpent: Bool { handOuts >= Limits.resendHandOuts }
    }

    /// The action at the end of a wait.
    package enum Step: Hashable, Sendable {
        /// The n-th hand-out.
        case handOut(attempt: Int)
        /// The oplog becomes a dead letter.
        case dead(Death)
    }

    /// Why an oplog is dead.
    package enum Death: Hashable, Sendable {
        /// Not confirmed within the whole ladder.
        case notConfirmed
        /// `Limits.resendHandOuts` is reached, restarts included.
        case handedOutTooOften
    }

    /// The wait after the first hand-out. Each later wait is twice as long; the last two are equal.
    package let firstWait: Duration

    /// A wait outside of the limits is clamped.
    package init(firstWait: Duration = Limits.firstResend) {
        self.firstWait = min(max(firstWait, Limits.shortestFirstResend), Limits.longestFirstResend)
    }

    /// The wait after the last hand-out, and the action if no confirmation has arrived by then.
    package func next(after state: State) -> (wait: Duration, step: Step) {
        let wait = firstWait * (1 << min(state.repeats, Limits.resendRepeats - 1))
        if state.isSpent { return (wait, .dead(.handedOutTooOften)) }
        if state.repeats >= Limits.resendRepeats { return (wait, .dead(.notConfirmed)) }
        return (wait, .handOut(attempt: state.handOuts + 1))
    }
}
