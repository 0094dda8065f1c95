import DeviceProtocol
import SwiftProtobuf

/// The pings of one connection, and its detection of a silent gateway. A pure value.
struct ClientPings {
    /// The longest silence of the gateway after a ping or a Connect.
    static let answerLimit = Duration.seconds(10)
    /// The heartbeat interval when the gateway names none.
    private static let defaultHeartbeat = Duration.seconds(60)

    /// The value is nil until the gateway has accepted the connect.
    private(set) var heartbeat: Heartbeat?
    private let learned: Heartbeat.Learned
    private var isForeground = true
    /// The ping interval that the gateway knows.
    private var announcedInterval = Duration.zero
    /// The time of the unanswered ping, and the idle time before it.
    private var ping: (sentAt: ContinuousClock.Instant, idle: Duration)?
    private var lastFrame: ContinuousClock.Instant?
    private var nextPing: ContinuousClock.Instant?
    private var answerDeadline: ContinuousClock.Instant?
    private var lastNumber: UInt64 = 0

    /// - Parameter learned: the results of earlier pings on the network.
    init(learned: Heartbeat.Learned) { self.learned = learned }

    /// The time of the next ping or of the timeout.
    var deadline: ContinuousClock.Instant? { [nextPing, answerDeadline].compactMap { $0 }.min() }

    /// Begins the wait for the answer to Connect.
    mutating func awaitConnected(inForeground isForeground: Bool, now: ContinuousClock.Instant) {
        answerDeadline = now + Self.answerLimit
        self.isForeground = isForeground
    }

    /// Begins the pings, at the gateway's interval or at the learned one.
    mutating func start(_ connected: Mss_Device_V1_Connected, now: ContinuousClock.Instant) {
        answerDeadline = nil
        lastFrame = now
        let usual =
            connected.heartbeatSeconds > 0
            ? Duration.seconds(Int64(min(connected.heartbeatSeconds, 3_600))) : Self.defaultHeartbeat
        let heartbeat = Heartbeat(
            usual: usual, longest: .seconds(Int64(min(connected.maxHeartbeatSeconds, 3_600))), learned: learned)
        self.heartbeat = heartbeat
        announcedInterval = usual
        nextPing = now + min(usual, heartbeat.interval(inForeground: isForeground))
    }

    /// Ends the pings and the wait for an answer.
    mutating func stop() { (nextPing, answerDeadline) = (nil, nil) }

    /// Records that a frame arrived.
    mutating func heard(_ now: ContinuousClock.Instant) {
        answerDeadline = nil
        lastFrame = now
        guard let ping else { return }
        self.ping = nil
        heartbeat?.answered(after: ping.idle)
    }

    /// Records that the app entered or left the foreground.
    ///
    /// - Returns: whether the state has changed.
    mutating func foregroundChanged(to isForeground: Bool, now: ContinuousClock.Instant) -> Bool {
        guard isForeground != self.isForeground else { return false }
        self.isForeground = isForeground
        if let heartbeat, let nextPing {
            self.nextPing = min(nextPing, now + heartbeat.interval(inForeground: isForeground))
        }
        return true
    }

    /// Returns whether the gateway has been silent for too long. Then the failure counts for the heartbeat.
    mutating func isSilent(at now: ContinuousClock.Instant) -> Bool {
        guard let answerDeadline, now >= answerDeadline else { return false }
        if let ping { heartbeat?.failed(after: ping.idle) }
        return true
    }

    /// Returns the ping that is due; nil when none is.
    mutating func next(at now: ContinuousClock.Instant) -> Mss_Device_V1_Packet? {
        guard let heartbeat, let nextPing, now >= nextPing else { return nil }
        let interval = heartbeat.interval(inForeground: isForeground)
        lastNumber += 1
        self.nextPing = now + interval
        answerDeadline = answerDeadline ?? now + Self.answerLimit
        ping = (now, (lastFrame ?? now).duration(to: now))
        let isNew = interval != announcedInterval
        announcedInterval = interval
        return .with {
            $0.ping.number = lastNumber
            if isNew { $0.ping.intervalSeconds = UInt32(clamping: interval.components.seconds) }
        }
    }
}
