/// Pushes of one form at one pace.
struct PushStream: Hashable, Sendable {
    /// How pushes are paced.
    enum Pace: Hashable, Sendable {
        /// Open loop: a push is due at its instant whether or not earlier ones were answered, and latency counts from
        /// that instant, so that a stall is charged to everything it delays.
        case rate(perSecond: Int, seconds: Int)
        /// Closed loop: so many pushes are always under way, until delivered: finds the highest rate.
        case window(Int, seconds: Int)
        /// So many for each user, as fast as the connections to the API take them.
        case each(Int)
        /// So many in all, each a second after every device has the one before.
        case times(Int)
    }

    /// Which call of the API carries them.
    enum Call: Hashable, Sendable {
        case single
        /// So many pushes in a call.
        case batch(items: Int)
        /// One push to everybody.
        case global

        /// Pushes in a call.
        var items: Int { if case .batch(let items) = self { items } else { 1 } }
    }

    var pace: Pace
    var call = Call.single
    /// How many of the users get them, the first ones; nil: all.
    var users: Int?

    /// Puts another pace in the place of a rate or a window.
    mutating func change(rate: Int?, window: Int?, seconds: Int?) {
        let planned: Int
        switch pace {
        case .rate(_, let lasting), .window(_, let lasting): planned = seconds ?? lasting
        case .each, .times: return
        }
        switch (rate, window, pace) {
        case (let rate?, _, _): pace = .rate(perSecond: rate, seconds: planned)
        case (_, let window?, _): pace = .window(window, seconds: planned)
        case (_, _, .window(let size, _)): pace = .window(size, seconds: planned)
        case (_, _, .rate(let perSecond, _)): pace = .rate(perSecond: perSecond, seconds: planned)
        default: break
        }
    }
}
