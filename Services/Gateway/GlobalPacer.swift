import ServiceLifecycle
import SyncModel
import Synchronization

/// Tells all sessions of an immediate global push, so many in a second: a broadcast must not hold up single pushes.
final class GlobalPacer: Service, Sendable {
    private static let turn = Duration.milliseconds(50)

    private struct State {
        /// Channels that wait, the first first.
        var order: [Int64] = []
        var notices: [Int64: ChannelNotice] = [:]
    }

    private let state = Mutex(State())
    private let wakes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let sessionsPerTurn: Int
    private let sessions: @Sendable (TargetAddress) -> [SessionHandle]
    private let tell: @Sendable ([SessionHandle], ChannelNotice) -> Void

    /// - Parameters:
    ///   - sessionsPerSecond: told in a second, of all channels together.
    ///   - sessions: those that listen for a target.
    init(
        sessionsPerSecond: Int, sessions: @escaping @Sendable (TargetAddress) -> [SessionHandle],
        tell: @escaping @Sendable ([SessionHandle], ChannelNotice) -> Void
    ) {
        sessionsPerTurn = max(1, sessionsPerSecond / 20)
        self.sessions = sessions
        self.tell = tell
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
        for await _ in wakes.stream.cancelOnGracefulShutdown() {
            while let notice = next() {
                var left = sessions(notice.address.target)[...]
                while !left.isEmpty {
                    tell(Array(left.prefix(sessionsPerTurn)), notice)
                    left = left.dropFirst(sessionsPerTurn)
                    try? await cancelWhenGracefulShutdown { try await Task.sleep(for: Self.turn) }
                    if Task.isShuttingDownGracefully || Task.isCancelled { return }
                }
            }
        }
    }

    private func next() -> ChannelNotice? {
        state.withLock { state in
            state.order.isEmpty ? nil : state.notices.removeValue(forKey: state.order.removeFirst())
        }
    }
}
