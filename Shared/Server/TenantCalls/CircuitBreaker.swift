/// Stops calls to a tenant that does not respond; pure.
///
/// Closed: calls are sent; five consecutive failures open the breaker. Open: no call is sent; after two seconds one
/// trial call is allowed. Trial: success closes the breaker, failure opens it again. Results of calls from before the
/// opening are ignored.
package struct CircuitBreaker: Sendable {
    package static let failuresToOpen = 5
    package static let openFor = Duration.seconds(2)

    /// The permission for one call; the caller reports its result with `ended`.
    package struct Pass: Sendable {
        /// The number of openings before the call.
        fileprivate let openings: Int
    }

    private enum State: Sendable {
        case closed(failures: Int)
        case open(until: ContinuousClock.Instant)
        case trial
    }

    private var state = State.closed(failures: 0)
    private var openings = 0

    /// Starts closed.
    package init() {}

    /// The number of these calls that the breaker would allow now.
    package func admits(_ calls: Int, at now: ContinuousClock.Instant) -> Int {
        switch state {
        case .closed: calls
        case .trial: 0
        case .open(let until): until <= now ? min(calls, 1) : 0
        }
    }

    /// Allows a call, whose end must be reported; nil while no call is allowed.
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

    /// Reports the end of an allowed call.
    package mutating func ended(_ pass: Pass, withAnswer isAnswer: Bool, at now: ContinuousClock.Instant) {
        guard pass.openings == openings else { return }
        switch (state, isAnswer) {
        case (.closed, true), (.trial, true): state = .closed(failures: 0)
        case (.closed(let failures), false) where failures + 1 < Self.failuresToOpen:
            state = .closed(failures: failures + 1)
        case (.closed, false), (.trial, false):
            state = .open(until: now + Self.openFor)
            openings += 1
        // No call was allowed since the breaker opened.
        case (.open, _): preconditionFailure("a call ended that was allowed while the breaker was open")
        }
    }
}
