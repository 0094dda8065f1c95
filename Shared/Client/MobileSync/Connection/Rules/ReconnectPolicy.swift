import DeviceProtocol

/// Computes the wait before the next connection attempt: exponential back-off with full jitter, plus the gateway's
/// demand (K9).
struct ReconnectPolicy {
    /// The action after a connection has ended.
    enum Decision: Hashable, Sendable {
        /// Connect again after the wait. A request of the app can shorten the wait, but not below `atLeast`, which the
        /// gateway demands.
        case wait(Duration, atLeast: Duration)
        /// As `wait`, but without a user until the app binds again.
        case waitSignedOut(Duration)
        /// As `wait`, but the first attempt goes to another address.
        case waitElsewhere(GatewayAddress, Duration, atLeast: Duration)
        /// Do not connect again automatically.
        case stop(code: UInt32, reason: String)
    }

    /// The upper bound of the first wait. Each failure doubles the bound.
    static let firstCeiling = Duration.seconds(1)
    /// Caps the bound during short outages, so that an unlucky device is back soon after the others.
    static let shortOutageCeiling = Duration.seconds(16)
    /// In a long outage, the bound is this fraction of its length. So a device is absent for at most 1/8 longer than
    /// the service.
    static let outageDivisor = 8
    /// The longest wait that the client chooses itself.
    static let lastCeiling = Duration.seconds(300)
    /// The longest wait, including the gateway's demand.
    static let longestWait = Duration.seconds(3_600)
    /// The shortest wait. It limits the attempts against a gateway that closes at once.
    static let shortestWait = Duration.milliseconds(50)
    /// A connection that was open for this time resets the bound.
    static let stableAfter = Duration.seconds(5)

    private var failures = 0
    /// The time of the first failure in the current series.
    private var failingSince = Duration.zero

    /// Returns the decision after a connection has ended.
    ///
    /// - Parameters:
    ///   - openFor: the time since the gateway accepted the connect; nil when it did not.
    ///   - now: a time on a clock that never goes back.
    ///   - random: a number from 0 to below 1.
    mutating func next(after end: ConnectionEnd, openFor: Duration?, now: Duration, random: Double) -> Decision {
        if let openFor, openFor >= Self.stableAfter { failures = 0 }
        if failures == 0 { failingSince = now }
        let longest = min(Self.lastCeiling, max(Self.shortOutageCeiling, (now - failingSince) / Self.outageDivisor))
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
        // The client has already replaced its identity.
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
