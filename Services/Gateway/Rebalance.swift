import SyncModel

/// How many devices this gateway gives away when it has more than its part, as after another one was added; pure.
///
/// Devices come back wherever the balancer leads them. Where that is here again, as with one that goes by the source
/// address, giving away does not help, and rests.
struct Rebalance {
    /// All gateways that hold a lease, and their sessions, as the store last said.
    struct Fleet: Hashable, Sendable {
        var gateways: Int
        var sessions: Int
    }

    /// So much above the mean is left as it is: balancers are not exact. Once it is more, it is brought down to little.
    private static let tolerance = 0.2
    private static let goal = 0.02
    /// And so many sessions, which cost a gateway nothing.
    private static let fewSessions = 100
    /// After so many seconds it is seen whether it helps.
    private static let trial = 30
    /// Seconds of rest when it does not: doubled each time in a row, up to about a day.
    private static let firstRest = 600
    private static let longestRest = 76_800

    private let perSecond: Int
    /// Sessions of each gateway in the mean, while this one gives away; nil: it does not.
    private var mean: Double?
    /// Of the trial that is under way.
    private var given = 0
    private var before = 0
    private var secondsLeft = 0
    private var resting = 0
    private var rest = firstRest

    /// - Parameter perSecond: how many at the most; 0: none are given away.
    init(perSecond: Int) { self.perSecond = perSecond }

    /// The store has said how many there are.
    mutating func learned(_ fleet: Fleet, own: Int) {
        let found = Double(fleet.sessions) / Double(max(1, fleet.gateways))
        let least = mean == nil ? max(found * Self.tolerance, Double(Self.fewSessions)) : found * Self.goal
        mean = fleet.gateways > 1 && Double(own) - found > least ? found : nil
    }

    /// Another second has begun: how many to give away in it.
    ///
    /// - Parameter own: sessions that are here.
    mutating func next(own: Int) -> Int {
        guard perSecond > 0 else { return 0 }
        if resting > 0 {
            resting -= 1
            return 0
        }
        if secondsLeft == 0 {
            if given > 0, before - own < given / 2 {
                (resting, rest) = (rest, min(rest * 2, Self.longestRest))
                given = 0
                return 0
            }
            if given > 0 { rest = Self.firstRest }
            (given, before, secondsLeft) = (0, own, Self.trial)
        }
        secondsLeft -= 1
        // What the store said is some seconds old: by then many may have gone.
        let now = min(perSecond, max(0, mean.map { own - Int($0) } ?? 0))
        given += now
        return now
    }
}
