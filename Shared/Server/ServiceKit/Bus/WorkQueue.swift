import Synchronization

/// A queue from any thread to consuming tasks. A consumer receives all waiting elements at once, up to its limit, so a
/// group commit needs no timer.
///
/// Unbounded here; the AMQP prefetch bounds it.
package final class WorkQueue<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        var takers: [CheckedContinuation<Void, Never>] = []
        var isFinished = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds elements in order. Callable from any thread; never blocks.
    package func add(contentsOf elements: some Sequence<Element>) {
        state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.isFinished { return nil }
            state.waiting.append(contentsOf: elements)
            // One consumer is enough: it takes all waiting elements. The consumer that slept last has the warmest
            // caches.
            return state.waiting.isEmpty ? nil : state.takers.popLast()
        }?.resume()
    }

    /// Adds one element.
    package func add(_ element: Element) { add(contentsOf: CollectionOfOne(element)) }

    /// Ends the queue. Consumers still receive the waiting elements; then `dequeue` returns an empty array.
    package func finish() {
        let takers = state.withLock { state in
            state.isFinished = true
            defer { state.takers = [] }
            return state.takers
        }
        for taker in takers { taker.resume() }
    }

    /// The number of waiting elements.
    package var count: Int { state.withLock { $0.waiting.count } }

    /// Waits for at least one element and returns up to `limit`; an empty array means that the queue has ended.
    ///
    /// Runs on the caller's executor, so an actor with its own thread resumes on that thread.
    package func dequeue(upTo limit: Int) async -> [Element] {
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
