import DeliveryHistory

/// Determines which frames were written to a device's socket after a given time: those that follow the pong of a ping
/// that the device sent after that time. So no assumption on transit times is needed.
struct SocketBarrier: Sendable {
    /// The reason why a frame must not have been written.
    enum Breach: Hashable, Sendable {
        case recalled, expired
    }

    private var pings: [UInt64: Duration] = [:]
    /// Frames that arrive now were written after this time, since the start of the run.
    private(set) var passed = Duration.zero - .seconds(3_600)

    /// Records a sent ping.
    mutating func pinged(_ number: UInt64, at now: Duration) { pings[number] = now }

    /// Records a pong.
    mutating func ponged(_ number: UInt64) {
        if let at = pings.removeValue(forKey: number) { passed = max(passed, at) }
    }

    /// Checks a push that arrives now.
    func breach(by end: TorturePushLedger.End?) -> Breach? {
        guard let end else { return nil }
        if let recalledAt = end.recalledAt, recalledAt <= passed { return .recalled }
        if let validUntil = end.validUntil, validUntil + HistoryChecker.clockTolerance <= passed { return .expired }
        return nil
    }
}
