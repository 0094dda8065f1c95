import ServiceLifecycle
import SyncModel
import Synchronization

/// Sends the notice of an immediate global push to all sessions, a few at a time, so that a broadcast does not delay
/// single pushes. The next sessions follow when the event loops have processed these and the rate allows it.
final class GlobalPushThrottle: Service, Sendable {
    /// Turns per second; fewer when there are few sessions. A single push waits for one turn at most.
    private static let turnsPerSecond = 200

    private struct State {
        /// Channels with a waiting notice, oldest first.
        var order: [Int64] = []
        var notices: [Int64: ChannelNotice] = [:]
    }

    private let state = Mutex(State())
    private let wakes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let sessionsPerTurn: Int
    private let turn: Duration
    private let sessions: @Sendable (TargetAddress) -> [SessionHandle]
    private let notify: @Sendable ([SessionHandle], ChannelNotice) async -> Void
    private let now: @Sendable () -> ContinuousClock.Instant
    private let pause: @Sendable (_ until: ContinuousClock.Instant) async -> Void

    /// Sleeps until the instant; returns early when the process shuts down.
    static let sleep: @Sendable (ContinuousClock.Instant) async -> Void = { until in
        try? await cancelWhenGracefulShutdown { try await Task.sleep(until: until) }
    }

    /// - Parameters:
    ///   - sessionsPerSecond: sessions notified per second at most, for all channels together.
    ///   - sessions: returns the sessions that listen to a target.
    ///   - notify: returns when the sessions have processed the notice.
    ///   - pause: sleeps until an instant.
    init(
        sessionsPerSecond: Int, sessions: @escaping @Sendable (TargetAddress) -> [SessionHandle],
        notify: @escaping @Sendable ([SessionHandle], ChannelNotice) async -> Void,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        pause: @escaping @Sendable (_ until: ContinuousClock.Instant) async -> Void = GlobalPushThrottle.sleep
    ) {
        sessionsPerTurn = max(1, sessionsPerSecond / Self.turnsPerSecond)
        turn = .seconds(1) * sessionsPerTurn / sessionsPerSecond
        self.sessions = sessions
        self.notify = notify
        self.now = now
        self.pause = pause
    }

    /// Enqueues a notice for all sessions. If a notice of the channel waits already, both are merged into one that
    /// carries only the head. The sessions then read from their own positions.
    func add(_ notice: ChannelNotice) {
        state.withLock { state in
            if let waiting = state.notices[notice.channelID] {
                state.notices[notice.channelID] = ChannelNotice(
                    channelID: notice.channelID, address: notice.address, head: max(waiting.upto, notice.upto))
            } else {
                state.order.append(notice.channelID)
                state.notices[notice.channelID] = notice
            }
        }
        wakes.continuation.yield()
    }

    func run() async throws {
        for await _ in wakes.stream.cancelOnGracefulShutdown() { await notifyWaiting() }
    }

    /// Sends all waiting notices.
    func notifyWaiting() async {
        while let notice = next() {
            var left = sessions(notice.address.target)[...]
            var next = now()
            while !left.isEmpty {
                await notify(Array(left.prefix(sessionsPerTurn)), notice)
                left = left.dropFirst(sessionsPerTurn)
                // A late turn does not make the following turns faster.
                next = max(next, now() - turn) + turn
                await pause(next)
                if Task.isShuttingDownGracefully || Task.isCancelled { return }
            }
        }
    }

    private func next() -> ChannelNotice? {
        state.withLock { state in
            state.order.isEmpty ? nil : state.notices.removeValue(forKey: state.order.removeFirst())
        }
    }
}
