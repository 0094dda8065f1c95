/// Spares a tenant that does not answer, and spares us waiting for it; pure.
///
/// Closed: calls go out; five failures in a row open it. Open: no call goes out; after two seconds one may, as a
/// trial. Trial: its success closes the breaker, its failure opens it again. Calls from before it opened are news of
/// then: how they end says nothing.
package struct CircuitBreaker: Sendable {
    package static let failuresToOpen = 5
    package static let openFor = Duration.seconds(2)

    /// A call that was let out, to be reported with its end.
    package struct Pass: Sendable {
        /// How often the breaker had opened before.
        fileprivate let openings: Int
    }

    private enum State: Sendable {
        case closed(failures: Int)
        case open(until: ContinuousClock.Instant)
        case trial
    }

    private var state = State.closed(failures: 0)
    private var openings = 0

    /// Closed.
    package init() {}

    /// How many of these calls would be let out now.
    package func admits(_ calls: Int, at now: ContinuousClock.Instant) -> Int {
        switch state {
        case .closed: calls
        case .trial: 0
        case .open(let until): until <= now ? min(calls, 1) : 0
        }
    }

    /// Lets a call out, whose end must be reported; nil when none may go out now.
    package mutating func pass(at now: ContinuousClock.Instant) -> Pass? {
        switch state {
        case .closed: break
        case .trial: return nil
        case .open(let until):
            guard until <= now else { return nil }
            state = .trial
        }
        return Pass(openings: openings)
    }

    /// A call that was let out has ended.
    package mutating func ended(_ pass: Pass, withAnswer isAnswer: Bool, at now: ContinuousClock.Instant) {
        guard pass.openings == openings else { return }
        switch (state, isAnswer) {
        case (.closed, true), (.trial, true): state = .closed(failures: 0)
        case (.closed(let failures), false) where failures + 1 < Self.failuresToOpen:
            state = .closed(failures: failures + 1)
        case (.closed, false), (.trial, false):
            state = .open(until: now + Self.openFor)
            openings += 1
        // Nothing was let out since it opened.
        case (.open, _): preconditionFailure("a call ended that an open breaker let out")
        }
    }
}
