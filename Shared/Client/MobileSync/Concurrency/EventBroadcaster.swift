import Concurrency

/// Sends each element to every listener. A listener has a bounded buffer, which drops its oldest elements. Its stream ends
/// with the broadcaster.
package final class EventBroadcaster<Element: Sendable>: Sendable {
    private struct State {
        var lastID: UInt64 = 0
        var listeners: [UInt64: AsyncStream<Element>.Continuation] = [:]
    }

    private let state = LockedValue(State())
    private let buffer: Int

    /// - Parameter buffer: the number of elements that a slow listener can be behind.
    package init(buffer: Int) { self.buffer = buffer }

    deinit { for listener in state.withLock({ $0.listeners.values }) { listener.finish() } }

    /// Adds a listener, which receives the elements that are sent from now on.
    package func listen() -> AsyncStream<Element> {
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

    /// Sends the element to every listener.
    package func send(_ element: Element) {
        let listeners = state.withLock { Array($0.listeners.values) }
        for listener in listeners { listener.yield(element) }
    }
}

extension AsyncStream where Element: Sendable {
    /// Waits for the next element; nil at the end of the stream, or when the task is cancelled. One task at a time can
    /// wait.
    ///
    /// A loop in place of an iterator, whose `next(isolation:)` does not exist before iOS 18.
    package func nextElement() async -> Element? {
        for await element in self { return element }
        return nil
    }
}
