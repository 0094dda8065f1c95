import SyncModel

/// Decides how many surplus devices this gateway closes per second, for example after a gateway was added; pure.
///
/// A closed device reconnects through the balancer. If the balancer leads it to this gateway again, as a balancer by
/// source address does, closing does not help. The gateway then pauses.
struct Rebalance {
    /// The gateways with a lease and their sessions, from the store's last reply.
    struct Fleet: Hashable, Sendable {
        var gateways: Int
        var sessions: Int
    }

    /// A surplus up to this part of the mean is accepted, because balancers are not exact. A larger surplus is reduced
    /// to `goal`.
    private static let tolerance = 0.2
    private static let goal = 0.02
    /// A surplus up to this number is accepted in any case.
    private static let fewSessions = 100
    /// Seconds after which the gateway checks whether closing helped.
    private static let trial = 30
    /// Seconds of pause when it did not help. Each further failure doubles the pause, up to about a day.
    private static let firstPause = 600
    private static let longestPause = 76_800

    private let perSecond: Int
    /// The mean number of sessions of a gateway while this one closes surplus devices; nil: no surplus.
    private var mean: Double?
    /// State of the current trial.
    private var closed = 0
    private var before = 0
    private var secondsLeft = 0
    private var pauseLeft = 0
    private var pause = firstPause

    /// - Parameter perSecond: devices closed per second, at most; 0: none.
    init(perSecond: Int) { self.perSecond = perSecond }

    /// Applies the number of gateways and sessions from the store.
    mutating func update(_ fleet: Fleet, own: Int) {
        let found = Double(fleet.sessions) / Double(max(1, fleet.gateways))
        let least = mean == nil ? max(found * Self.tolerance, Double(Self.fewSessions)) : found * Self.goal
        mean = fleet.gateways > 1 && Double(own) - found > least ? found : nil
    }

    /// The number of devices to close in the next second.
    ///
    /// - Parameter own: the sessions of this gateway.
    mutating func next(own: Int) -> Int {
        guard perSecond > 0 else { return 0 }
        if pauseLeft > 0 {
            pauseLeft -= 1
            return 0
        }
        if secondsLeft == 0 {
            if closed > 0, before - own < closed / 2 {
                (pauseLeft, pause) = (pause, min(pause * 2, Self.longestPause))
                closed = 0
                return 0
            }
            if closed > 0 { pause = Self.firstPause }
            (closed, before, secondsLeft) = (0, own, Self.trial)
        }
        secondsLeft -= 1
        // The store's numbers are some seconds old, and many sessions may have ended since.
        let now = min(perSecond, max(0, mean.map { own - Int($0) } ?? 0))
        closed += now
        return now
    }
}
