/// The ping interval on one network (K9). It grows while pings are answered, and shrinks after dead connections. A pure
/// value.
///
/// Networks drop idle connections after different times, and every ping switches the radio on.
struct Heartbeat: Hashable, Sendable {
    /// The results of pings on a network.
    struct Learned: Hashable, Sendable {
        /// The longest interval with an answer. The value is nil when only the gateway's own interval was answered.
        var good: Duration?
        /// The shortest interval that is known to end connections.
        var bad: Duration?
        /// The interval at which one connection was found dead. Nil again after an answer at this interval, or after
        /// the second dead connection.
        var doubtful: Duration?
    }

    /// The lower bound of the interval, unless the gateway's own interval is shorter.
    static let shortest = Duration.seconds(15)
    /// The number of consecutive answers after which the interval grows.
    static let answersToGrow = 3

    private let usual: Duration
    private let longest: Duration
    private(set) var learned: Learned
    /// The interval while the app is in the background.
    private(set) var interval: Duration
    private var answers = 0

    /// - Parameters:
    ///   - usual: the gateway's own interval.
    ///   - longest: the longest interval that the gateway allows. A value below `usual` counts as `usual`.
    init(usual: Duration, longest: Duration, learned: Learned = Learned()) {
        self.usual = usual
        self.longest = max(usual, longest)
        self.learned = learned
        interval = min(self.longest, learned.good ?? usual)
        if let bad = learned.bad, bad <= interval { interval = max(min(Self.shortest, usual), bad / 2) }
    }

    /// Returns the interval. In the foreground it is at most the gateway's own, so that a dead connection is found
    /// soon.
    func interval(inForeground: Bool) -> Duration { inForeground ? min(usual, interval) : interval }

    /// Records the answer to a ping that followed this idle time.
    mutating func answered(after idle: Duration) {
        guard isConclusive(idle) else { return }
        learned.good = interval
        if let doubtful = learned.doubtful, interval >= doubtful { learned.doubtful = nil }
        answers += 1
        guard answers >= Self.answersToGrow else { return }
        answers = 0
        let longer = min(longest, interval * 3 / 2)
        // An interval that has failed is not tried again.
        if learned.bad.map({ longer < $0 }) ?? true { interval = longer }
    }

    /// Records a dead connection, found by a ping after this idle time. Only the second failure shortens the interval,
    /// because the first one can be a short loss of the network. The first one is kept in `learned`, which outlives
    /// this connection.
    mutating func failed(after idle: Duration) {
        answers = 0
        guard isConclusive(idle) else { return }
        guard let doubtful = learned.doubtful, interval >= doubtful else {
            learned.doubtful = interval
            return
        }
        learned.doubtful = nil
        learned.bad = interval
        if let good = learned.good, good >= interval { learned.good = nil }
        interval = max(min(Self.shortest, usual), learned.good ?? interval / 2)
    }

    /// Whether the idle time says something about the interval. The previous answer arrives shortly after its ping, so
    /// the idle time is always a little shorter than the interval.
    private func isConclusive(_ idle: Duration) -> Bool { idle * 10 >= interval * 9 }
}
