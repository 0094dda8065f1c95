/// Spares a tenant that does not answer, and spares us waiting for it; pure.
///
/// Closed: calls go out; five failures in a row open it. Open: no call goes out; after two seconds one may, as a
/// trial. Trial: its success closes the breaker, its failure opens it again.
struct CircuitBreaker {
    static let failuresToOpen = 5
    static let openFor = Duration.seconds(2)

    private enum State {
        case closed(failures: Int)
        case open(until: ContinuousClock.Instant)
        case trial
    }

    private var state = State.closed(failures: 0)

    /// Whether a call may go out now; a yes begins it, and its end must be reported.
    mutating func admits(at now: ContinuousClock.Instant) -> Bool {
        switch state {
        case .closed: return true
        case .trial: return false
        case .open(let until):
            guard until <= now else { return false }
            state = .trial
            return true
        }
    }

    /// A call that was admitted has ended.
    mutating func ended(withAnswer isAnswer: Bool, at now: ContinuousClock.Instant) {
        switch (state, isAnswer) {
        case (.closed, true), (.trial, true): state = .closed(failures: 0)
        case (.closed(let failures), false) where failures + 1 < Self.failuresToOpen:
            state = .closed(failures: failures + 1)
        case (.closed, false), (.trial, false): state = .open(until: now + Self.openFor)
        // It began before the breaker opened: news of then.
        case (.open, _): break
        }
    }
}
