import ServiceLifecycle
import SyncModel
import Synchronization

/// Tells all sessions of an immediate global push, a few at a time: a broadcast must not hold up single pushes. The
/// next ones wait until event loops have done with these, whatever that takes, and until the pace allows it.
final class GlobalPacer: Service, Sendable {
    /// Turns in a second, unless there are fewer sessions to tell: single pushes wait for no more than one.
    private static let turnsPerSecond = 200

    private struct State {
        /// Channels that wait, the first first.
        var order: [Int64] = []
        var notices: [Int64: ChannelNotice] = [:]
    }

    private let state = Mutex(State())
    private let wakes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let sessionsPerTurn: Int
    private let turn: Duration
    private let sessions: @Sendable (TargetAddress) -> [SessionHandle]
    private let tell: @Sendable ([SessionHandle], ChannelNotice) async -> Void
    private let now: @Sendable () -> ContinuousClock.Instant
    private let pause: @Sendable (_ until: ContinuousClock.Instant) async -> Void

    /// Lets time pass, or less when the process is to end.
    static let sleep: @Sendable (ContinuousClock.Instant) async -> Void = { until in
        try? await cancelWhenGracefulShutdown { try await Task.sleep(until: until) }
    }

    /// - Parameters:
    ///   - sessionsPerSecond: told in a second at the most, of all channels together.
    ///   - sessions: those that listen for a target.
    ///   - tell: returns when they have been told.
    ///   - pause: lets time pass.
    init(
        sessionsPerSecond: Int, sessions: @escaping @Sendable (TargetAddress) -> [SessionHandle],
        tell: @escaping @Sendable ([SessionHandle], ChannelNotice) async -> Void,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        pause: @escaping @Sendable (_ until: ContinuousClock.Instant) async -> Void = GlobalPacer.sleep
    ) {
        sessionsPerTurn = max(1, sessionsPerSecond / Self.turnsPerSecond)
        turn = .seconds(1) * sessionsPerTurn / sessionsPerSecond
        self.sessions = sessions
        self.tell = tell
        self.now = now
        self.pause = pause
    }

    /// Takes a notice for all sessions. One that still waits is united with it: then only how far the channel reaches
    /// is told, and sessions read on from where they are.
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
        for await _ in wakes.stream.cancelOnGracefulShutdown() { await tellWaiting() }
    }

    /// Tells sessions of all that waits.
    func tellWaiting() async {
        while let notice = next() {
            var left = sessions(notice.address.target)[...]
            var next = now()
            while !left.isEmpty {
                await tell(Array(left.prefix(sessionsPerTurn)), notice)
                left = left.dropFirst(sessionsPerTurn)
                // A turn that came late takes nothing from the pace of those behind it.
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
