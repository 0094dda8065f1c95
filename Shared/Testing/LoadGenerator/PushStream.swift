/// A sequence of pushes with one kind of call and one pace.
struct PushStream: Hashable, Sendable {
    /// The pace of a stream.
    enum Pace: Hashable, Sendable {
        /// Open loop: a push is sent when it is due, regardless of earlier responses. Latency counts from the due time,
        /// so a stall affects every push that it delays.
        case rate(perSecond: Int, seconds: Int)
        /// Closed loop: this many pushes are in flight until their delivery. Finds the highest rate.
        case window(Int, seconds: Int)
        /// This many pushes for each user, as fast as the connections permit.
        case each(Int)
        /// This many pushes in total, each one second after the complete delivery of the previous one.
        case times(Int)
    }

    /// The API call of the pushes.
    enum Call: Hashable, Sendable {
        case single
        /// A batch call with this many pushes.
        case batch(items: Int)
        /// A global push.
        case global

        /// Number of pushes per call.
        var items: Int { if case .batch(let items) = self { items } else { 1 } }
    }

    var pace: Pace
    var call = Call.single
    /// Number of users that receive the pushes, from the first. The value is nil for all users.
    var users: Int?

    /// Overrides a rate or a window.
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
