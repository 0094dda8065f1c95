import DeviceProtocol

/// When a client connects again: exponential back-off with full jitter, under what the gateway said (spec K9).
struct ReconnectPolicy {
    /// What to do after a connection has ended.
    enum Decision: Hashable, Sendable {
        /// Connect again after the back-off; not before the time that the gateway named, whatever the app wishes.
        case wait(Duration, atLeast: Duration)
        /// The same, but bind nobody until the app binds again.
        case waitSignedOut(Duration)
        /// The same, to another address first.
        case waitElsewhere(GatewayAddress, Duration, atLeast: Duration)
        /// Do not come back by yourself.
        case stop(code: UInt32, reason: String)
    }

    /// The ceiling of the first wait; each failure doubles it.
    static let firstCeiling = Duration.seconds(1)
    /// The ceiling of a short outage: who had bad luck once or twice is back soon after the others all the same.
    static let shortOutageCeiling = Duration.seconds(16)
    /// In a long outage the ceiling grows with it, so that a device is away at most this part longer than the service.
    static let partOfOutage = 8
    /// No wait of our own is longer.
    static let lastCeiling = Duration.seconds(300)
    /// No wait at all is longer, whatever the gateway says.
    static let longestWait = Duration.seconds(3_600)
    /// No wait is shorter, so that a gateway that closes at once is not hammered.
    static let shortestWait = Duration.milliseconds(50)
    /// A connection that was open this long has succeeded; the ceiling starts anew.
    static let stableAfter = Duration.seconds(5)

    private var failures = 0
    /// When the first of the failures was.
    private var failingSince = Duration.zero

    /// - Parameters:
    ///   - openFor: how long the gateway's greeting was old; nil when there was none.
    ///   - now: on a clock that never goes back.
    ///   - random: from 0 to below 1.
    mutating func next(after end: ConnectionEnd, openFor: Duration?, now: Duration, random: Double) -> Decision {
        if let openFor, openFor >= Self.stableAfter { failures = 0 }
        if failures == 0 { failingSince = now }
        let longest = min(Self.lastCeiling, max(Self.shortOutageCeiling, (now - failingSince) / Self.partOfOutage))
        let ceiling = min(longest, Self.firstCeiling * (1 << min(failures, 9)))
        failures += 1
        let delay = max(Self.shortestWait, ceiling * random)
        if end == .left {
            failures = 0
            return .wait(.zero, atLeast: .zero)
        }
        guard case .closed(let code, let reason, let retryAfter, let address) = end else {
            return .wait(delay, atLeast: .zero)
        }
        // The client has taken another identity.
        if code == CloseCode.registerAnew.rawValue { return .wait(delay, atLeast: .zero) }
        let least = min(Self.longestWait - delay, retryAfter)
        switch CloseCode.Group(code: code) {
        case .reconnectNow: return .wait(delay, atLeast: .zero)
        case .reconnectLater: return .wait(delay, atLeast: least)
        case .reconnectElsewhere:
            return GatewayAddress(text: address).map { .waitElsewhere($0, delay, atLeast: least) }
                ?? .wait(delay, atLeast: least)
        case .signInAgain: return .waitSignedOut(delay)
        case .stayAway: return .stop(code: code, reason: reason)
        }
    }
}
