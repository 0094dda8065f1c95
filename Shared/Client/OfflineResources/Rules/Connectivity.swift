import Foundation

/// Whether the client can send requests: decided by the app, the operating system and earlier failures. A pure value.
///
/// After a failure the client backs off for 1, 2, 4 … 60 s. Any response and any report about the network end the
/// back-off.
struct Connectivity: Sendable, Hashable {
    private static let longestPause: TimeInterval = 60

    private var hasNetwork = true
    private var isOfflineMode = false
    private var failures = 0
    private var pauseUntil: Date?

    /// Applies a report of the operating system. Before the first report, a network is assumed.
    mutating func networkChanged(isAvailable: Bool) {
        hasNetwork = isAvailable
        answered()
    }

    /// Switches offline mode; no effect without a network.
    ///
    /// - Returns: whether the mode changed.
    mutating func setOfflineMode(_ isOn: Bool) -> Bool {
        guard hasNetwork, isOfflineMode != isOn else { return false }
        isOfflineMode = isOn
        return true
    }

    /// Records a response, or another sign that the backend can be reached.
    mutating func answered() {
        failures = 0
        pauseUntil = nil
    }

    /// Records that the backend is unreachable or temporarily unavailable.
    ///
    /// - Parameters:
    ///   - retryAfter: the time that the backend asked for, in seconds.
    ///   - random: 0 to 1; shortens the back-off by up to a quarter, so that devices do not return together.
    mutating func failed(at now: Date, retryAfter: TimeInterval? = nil, random: Double) {
        failures += 1
        let pause = min(Self.longestPause, pow(2, Double(min(failures, 10) - 1))) * (0.75 + 0.25 * random)
        pauseUntil = now.addingTimeInterval(max(pause, min(retryAfter ?? 0, 3_600)))
    }

    /// Whether a request can be sent now.
    func isOnline(at now: Date) -> Bool { status(at: now) == .online }

    func status(at now: Date) -> SyncNetworkStatus {
        guard hasNetwork else { return .offline }
        if isOfflineMode { return .offlineTest }
        return pause(at: now) == nil ? .online : .offline
    }

    /// The rest of the back-off; nil: none.
    func pause(at now: Date) -> TimeInterval? {
        guard let pauseUntil else { return nil }
        let rest = pauseUntil.timeIntervalSince(now)
        // Ignores a rest that is too long, which appears after the clock was set back.
        return rest > 0 && rest <= 3_600 ? rest : nil
    }
}
