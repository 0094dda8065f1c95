/// Decides when a client sends a probe to a cluster, and when its node has lost the other nodes; pure (R10).
///
/// A node that has lost the others can stay up (RabbitMQ 4 with Khepri). It answers heartbeats, so its clients keep
/// their connections, but it stores and delivers nothing. A probe is a message to a quorum queue. It is confirmed only
/// after most of the queue's replicas have stored it.
struct QuorumProbe {
    static let interval = Duration.milliseconds(500)
    /// How long a probe may wait after the first confirmation. When the node that leads the queue hangs, the others
    /// mostly choose another leader before. If not, clients of good nodes leave too, which costs a connect and their
    /// open requests.
    static let limit = Duration.milliseconds(3_200)
    /// How long the first probe of a connection may wait. It is short, because a connection to a good node can be stuck:
    /// on RabbitMQ 3.10 one that was opened before the queues of a hung node had new leaders confirmed nothing for
    /// 3.8 s. The next connection got its confirmations.
    static let firstLimit = Duration.seconds(1)

    /// How long a probe may wait now.
    private var currentLimit: Duration
    private var sentAt: ContinuousClock.Instant
    private var isWaiting = false
    /// When the first probe was sent that was not confirmed; nil if the last one was confirmed.
    private var unconfirmedSince: ContinuousClock.Instant?
    private var isProven = false

    /// The probes of a connection that is established now. The first one is due at once.
    ///
    /// - Parameter previous: the probes of the connection before. If it has confirmed none, the first probe may wait
    ///   twice as long as there, up to `limit`: all nodes may be slow.
    init(now: ContinuousClock.Instant, after previous: Self? = nil) {
        sentAt = now - Self.interval
        currentLimit = Self.firstLimit
        if let previous, !previous.isProven { currentLimit = min(previous.currentLimit * 2, Self.limit) }
    }

    /// Whether to send a probe now. If so, it counts as sent.
    mutating func sends(at now: ContinuousClock.Instant) -> Bool {
        guard !isWaiting, sentAt.duration(to: now) >= Self.interval else { return false }
        sentAt = now
        isWaiting = true
        unconfirmedSince = unconfirmedSince ?? now
        return true
    }

    /// A probe has its outcome.
    mutating func end(_ outcome: PublishOutcome) {
        isWaiting = false
        guard outcome == .confirmed else { return }
        unconfirmedSince = nil
        isProven = true
        currentLimit = Self.limit
    }

    /// The broker has blocked the connection, and reads nothing from it.
    mutating func pause(at now: ContinuousClock.Instant) { unconfirmedSince = unconfirmedSince.map { _ in now } }

    /// Whether the node has lost the others.
    func hasFailed(at now: ContinuousClock.Instant) -> Bool {
        unconfirmedSince.map { $0.duration(to: now) >= currentLimit } ?? false
    }

    /// The time until the next probe, or until the limit of one that waits; zero or less if it is over.
    func untilNext(at now: ContinuousClock.Instant) -> Duration {
        let next = isWaiting ? (unconfirmedSince ?? now) + currentLimit : sentAt + Self.interval
        return now.duration(to: next)
    }
}
