import Synchronization

/// Gives what is sent to everybody who listens; each has a bounded buffer, of which the oldest goes first.
final class Broadcast<Element: Sendable>: Sendable {
    private struct State {
        var lastID: UInt64 = 0
        var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
    }

    private let state = Mutex(State())
    private let buffer: Int

    /// - Parameter buffer: how many elements a slow listener may be behind.
    init(buffer: Int) { self.buffer = buffer }

    /// A new listener; it hears what is sent from now on.
    func listen() -> AsyncStream<Element> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: Element.self, bufferingPolicy: .bufferingNewest(buffer))
        let id = state.withLock { state in
            state.lastID += 1
            state.listeners[state.lastID] = continuation
            return state.lastID
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: id) }
        }
        return stream
    }

    /// Gives the element to every listener.
    func send(_ element: Element) {
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(element) }
    }
}
