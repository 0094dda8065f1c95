import Synchronization

/// Gives what is sent to everybody who listens; one that is too far behind loses the oldest.
final class Listeners<Element: Sendable>: Sendable {
    private struct State {
        var lastID: UInt64 = 0
        var continuations: [UInt64: AsyncStream<Element>.Continuation] = [:]
    }

    private let state = Mutex(State())
    private let buffer: Int

    /// - Parameter buffer: how many elements a listener may be behind.
    init(buffer: Int = ServiceLimits.behind) { self.buffer = buffer }

    deinit { for continuation in state.withLock({ $0.continuations.values }) { continuation.finish() } }

    /// A new listener; it hears what is sent from now on.
    func listen() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self, bufferingPolicy: .bufferingNewest(buffer))
        let id = state.withLock { state in
            state.lastID += 1
            state.continuations[state.lastID] = continuation
            return state.lastID
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.continuations.removeValue(forKey: id) }
        }
        return stream
    }

    /// Gives the element to every listener.
    func send(_ element: Element) {
        let continuations = state.withLock { Array($0.continuations.values) }
        for continuation in continuations { continuation.yield(element) }
    }
}
