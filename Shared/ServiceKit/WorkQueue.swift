import Synchronization

/// Hands elements from any thread to one task, which takes whatever waits: the group commit needs no timer.
///
/// Its bound is the producer's: consumers of the broker are held by their prefetch.
package final class WorkQueue<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        var taker: CheckedContinuation<Void, Never>?
        var isFinished = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds elements in order; callable from any thread, never blocks.
    package func add(contentsOf elements: some Sequence<Element>) {
        state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.isFinished { return nil }
            state.waiting.append(contentsOf: elements)
            return state.waiting.isEmpty ? nil : Self.awaken(&state)
        }?.resume()
    }

    /// Adds one element.
    package func add(_ element: Element) { add(contentsOf: CollectionOfOne(element)) }

    /// Ends the queue: what waits is still taken, then `take` returns an empty array.
    package func finish() {
        state.withLock { state -> CheckedContinuation<Void, Never>? in
            state.isFinished = true
            return Self.awaken(&state)
        }?.resume()
    }

    /// How many elements wait.
    package var count: Int { state.withLock { $0.waiting.count } }

    /// Waits until at least one element is there and takes up to `limit`; empty means finished.
    ///
    /// One task at a time; it stays on the caller's executor.
    package func take(upTo limit: Int) async -> [Element] {
        while true {
            let taken: [Element]? = state.withLock { state in
                if state.waiting.isEmpty { return state.isFinished ? [] : nil }
                if state.waiting.count <= limit {
                    defer { state.waiting = [] }
                    return state.waiting
                }
                defer { state.waiting.removeFirst(limit) }
                return Array(state.waiting.prefix(limit))
            }
            if let taken { return taken }
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    if !state.waiting.isEmpty || state.isFinished { return true }
                    precondition(state.taker == nil, "a WorkQueue has one taker at a time")
                    state.taker = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        }
    }

    private static func awaken(_ state: inout State) -> CheckedContinuation<Void, Never>? {
        defer { state.taker = nil }
        return state.taker
    }
}
