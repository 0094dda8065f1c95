/// How often to ping on one network: longer while that is answered, shorter when connections die of it (spec K9); pure.
///
/// Networks forget connections that are idle for too long, each after a time of its own, and every ping wakes the
/// radio.
struct Heartbeat: Hashable, Sendable {
    /// What is known of a network.
    struct Learned: Hashable, Sendable {
        /// The longest interval that was answered; nil: none longer than the gateway's own.
        var good: Duration?
        /// The shortest interval at which connections were found dead.
        var bad: Duration?
        /// The interval at which one connection was found dead; nil after an answer to such a one, or the second time.
        var doubtful: Duration?
    }

    /// No interval is shorter, unless the gateway's own is.
    static let shortest = Duration.seconds(15)
    /// Answers in a row before the interval grows.
    static let answersToGrow = 3

    private let usual: Duration
    private let longest: Duration
    private(set) var learned: Learned
    /// The interval for an app that nobody looks at.
    private(set) var interval: Duration
    private var answers = 0

    /// - Parameters:
    ///   - usual: the gateway's own interval.
    ///   - longest: the gateway allows no longer one; at least `usual`.
    init(usual: Duration, longest: Duration, learned: Learned = Learned()) {
        self.usual = usual
        self.longest = max(usual, longest)
        self.learned = learned
        interval = min(self.longest, learned.good ?? usual)
        if let bad = learned.bad, bad <= interval { interval = max(min(Self.shortest, usual), bad / 2) }
    }

    /// In the foreground a dead connection is to be found soon.
    func interval(inForeground: Bool) -> Duration { inForeground ? min(usual, interval) : interval }

    /// A ping was answered that came after an idle interval of this length.
    mutating func answered(after idle: Duration) {
        guard isTelling(idle) else { return }
        learned.good = interval
        if let doubtful = learned.doubtful, interval >= doubtful { learned.doubtful = nil }
        answers += 1
        guard answers >= Self.answersToGrow else { return }
        answers = 0
        let longer = min(longest, interval * 3 / 2)
        // What has failed once is not tried again.
        if learned.bad.map({ longer < $0 }) ?? true { interval = longer }
    }

    /// A connection was found dead by a ping after an idle interval of this length. The second time shortens it: the
    /// first may have been a tunnel. That is noted in `learned`, since it ends this connection and its heartbeat.
    mutating func failed(after idle: Duration) {
        answers = 0
        guard isTelling(idle) else { return }
        guard let doubtful = learned.doubtful, interval >= doubtful else {
            learned.doubtful = interval
            return
        }
        learned.doubtful = nil
        learned.bad = interval
        if let good = learned.good, good >= interval { learned.good = nil }
        interval = max(min(Self.shortest, usual), learned.good ?? interval / 2)
    }

    /// The answer to the ping before came a moment after it, so an idle interval is always a little shorter.
    private func isTelling(_ idle: Duration) -> Bool { idle * 10 >= interval * 9 }
}
