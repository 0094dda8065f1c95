import ServiceLifecycle
import SyncModel

/// Tells all sessions of an immediate global push, so many in a second: a broadcast must not hold up single pushes.
final class GlobalPacer: Service, Sendable {
    private static let turn = Duration.milliseconds(50)
    /// Notices that wait; one that finds no room is read by its devices when they connect.
    private static let waitingMax = 64

    private let notices = AsyncStream.makeStream(of: ChannelNotice.self, bufferingPolicy: .bufferingOldest(waitingMax))
    private let sessionsPerTurn: Int
    private let sessions: @Sendable () -> [SessionHandle]
    private let tell: @Sendable ([SessionHandle], ChannelNotice) -> Void

    /// - Parameter sessionsPerSecond: told in a second, of all notices together.
    init(
        sessionsPerSecond: Int, sessions: @escaping @Sendable () -> [SessionHandle],
        tell: @escaping @Sendable ([SessionHandle], ChannelNotice) -> Void
    ) {
        sessionsPerTurn = max(1, sessionsPerSecond / 20)
        self.sessions = sessions
        self.tell = tell
    }

    /// Takes a notice for all sessions.
    func add(_ notice: ChannelNotice) { notices.continuation.yield(notice) }

    func run() async throws {
        for await notice in notices.stream.cancelOnGracefulShutdown() {
            var left = sessions()[...]
            while !left.isEmpty {
                tell(Array(left.prefix(sessionsPerTurn)), notice)
                left = left.dropFirst(sessionsPerTurn)
                try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.turn) }
                if Task.isShuttingDownGracefully || Task.isCancelled { return }
            }
        }
    }
}
