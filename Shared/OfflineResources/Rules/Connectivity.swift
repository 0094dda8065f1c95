import Foundation

/// Whether the service may be asked: by what the app and the operating system say, and by failures.
///
/// After a failure nothing is tried for 1 s, then 2, 4 … 60 s; any answer, and news of the network, end that.
struct Connectivity: Sendable, Hashable {
    private static let longestPause: TimeInterval = 60

    private var hasNetwork = true
    private var isOfflineMode = false
    private var failures = 0
    private var pauseUntil: Date?

    /// What the operating system says; it is there from the start until somebody says otherwise.
    mutating func networkChanged(isAvailable: Bool) {
        hasNetwork = isAvailable
        answered()
    }

    /// Has no effect without a network.
    ///
    /// - Returns: whether it has an effect.
    mutating func setOfflineMode(_ isOn: Bool) -> Bool {
        guard hasNetwork, isOfflineMode != isOn else { return false }
        isOfflineMode = isOn
        return true
    }

    /// The service answered, or there is a sign that it can be reached.
    mutating func answered() {
        failures = 0
        pauseUntil = nil
    }

    /// The service could not be reached, or says that it does not answer now.
    ///
    /// - Parameters:
    ///   - retryAfter: the service's own wish.
    ///   - random: 0 to 1; a part of the pause, so that devices do not come back together.
    mutating func failed(at now: Date, retryAfter: TimeInterval? = nil, random: Double) {
        failures += 1
        let pause = min(Self.longestPause, pow(2, Double(min(failures, 10) - 1))) * (0.75 + 0.25 * random)
        pauseUntil = now.addingTimeInterval(max(pause, min(retryAfter ?? 0, 3_600)))
    }

    /// Whether a request may be made now.
    func isOnline(at now: Date) -> Bool { status(at: now) == .online }

    func status(at now: Date) -> SyncNetworkStatus {
        guard hasNetwork else { return .offline }
        if isOfflineMode { return .offlineTest }
        return pause(at: now) == nil ? .online : .offline
    }

    /// How long nothing is tried because of a failure; nil: it may be tried.
    func pause(at now: Date) -> TimeInterval? {
        guard let pauseUntil else { return nil }
        let rest = pauseUntil.timeIntervalSince(now)
        // A clock that was set back must not make it long.
        return rest > 0 && rest <= 3_600 ? rest : nil
    }
}
