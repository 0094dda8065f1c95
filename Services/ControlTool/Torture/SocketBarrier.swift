import DeliveryHistory

/// Tells what was written to a device's socket after a moment: everything that comes behind the answer to a ping which
/// the device sent after that moment. So nothing has to be assumed of the time that frames are under way.
struct SocketBarrier: Sendable {
    /// Why a frame should not have been written.
    enum Breach: Hashable, Sendable {
        case recalled, expired
    }

    private var pings: [UInt64: Duration] = [:]
    /// Every frame that comes now was written after this, since the run's beginning.
    private(set) var passed = Duration.zero - .seconds(3_600)

    /// The device sends a ping with this number.
    mutating func pinged(_ number: UInt64, at now: Duration) { pings[number] = now }

    /// The ping with this number is answered.
    mutating func ponged(_ number: UInt64) {
        if let at = pings.removeValue(forKey: number) { passed = max(passed, at) }
    }

    /// Judges a push that came now.
    func breach(by end: TorturePushLedger.End?) -> Breach? {
        guard let end else { return nil }
        if let recalledAt = end.recalledAt, recalledAt <= passed { return .recalled }
        if let validUntil = end.validUntil, validUntil + HistoryChecker.clockTolerance <= passed { return .expired }
        return nil
    }
}
