import Synchronization

/// Hands elements from any thread to the tasks that take them, whatever waits at once: a group commit needs no timer.
///
/// Its bound is the producer's: consumers of the broker are held by their prefetch.
package final class WorkQueue<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        var takers: [CheckedContinuation<Void, Never>] = []
        var isFinished = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds elements in order; callable from any thread, never blocks.
    package func add(contentsOf elements: some Sequence<Element>) {
        state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.isFinished { return nil }
            state.waiting.append(contentsOf: elements)
            // One taker is enough: it takes all that waits. The one that slept last is the warmest.
            return state.waiting.isEmpty ? nil : state.takers.popLast()
        }?.resume()
    }

    /// Adds one element.
    package func add(_ element: Element) { add(contentsOf: CollectionOfOne(element)) }

    /// Ends the queue: what waits is still taken, then `take` returns an empty array.
    package func finish() {
        let takers = state.withLock { state in
            state.isFinished = true
            defer { state.takers = [] }
            return state.takers
        }
        for taker in takers { taker.resume() }
    }

    /// How many elements wait.
    package var count: Int { state.withLock { $0.waiting.count } }

    /// Waits until at least one element is there and takes up to `limit`; empty means finished.
    ///
    /// It stays on the caller's executor, so that an actor with a thread of its own is woken on that thread.
    package func take(upTo limit: Int) async -> [Element] {
        while true {
            let (taken, next) = state.withLock { state -> ([Element]?, CheckedContinuation<Void, Never>?) in
                if state.waiting.isEmpty { return (state.isFinished ? [] : nil, nil) }
                let taken = Array(state.waiting.prefix(limit))
                state.waiting.removeFirst(taken.count)
                return (taken, state.waiting.isEmpty ? nil : state.takers.popLast())
            }
            next?.resume()
            if let taken { return taken }
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if !state.waiting.isEmpty || state.isFinished { return true }
                    state.takers.append(continuation)
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }
}
