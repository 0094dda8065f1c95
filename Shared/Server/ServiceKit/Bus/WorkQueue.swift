import Synchronization

/// A queue from any thread to consuming tasks. A consumer receives all waiting elements at once, up to its limit, so a
/// group commit needs no timer. A standby consumer helps when elements wait too long for the others.
///
/// Unbounded here; the AMQP prefetch bounds it.
package final class WorkQueue<Element: Sendable>: Sendable {
    private typealias Continuation = CheckedContinuation<Void, Never>

    /// What a consumer does next.
    private enum Step {
        /// Returns elements, and wakes another consumer for those that are left. No elements: the queue has ended.
        case take([Element], next: Continuation?)
        /// A standby consumer looks again at this time.
        case look(at: ContinuousClock.Instant)
        case sleep
    }

    private struct State {
        var waiting: [Element] = []
        /// Since when elements wait and no consumer took any.
        var waitingSince = ContinuousClock.now
        var takers: [Continuation] = []
        var standbys: [Continuation] = []
        var isFinished = false

        /// - Parameter standbyDelay: of a standby consumer; nil: another one, which takes elements at once.
        mutating func step(upTo limit: Int, standbyDelay: Duration?) -> Step {
            if waiting.isEmpty { return isFinished ? .take([], next: nil) : .sleep }
            if let standbyDelay, !Task.isCancelled, waitingSince + standbyDelay > .now {
                return .look(at: waitingSince + standbyDelay)
            }
            let taken = Array(waiting.prefix(limit))
            waiting.removeFirst(taken.count)
            waitingSince = .now
            return .take(taken, next: nextConsumer())
        }

        /// The consumer to wake for waiting elements. The one that slept last has the warmest caches.
        mutating func nextConsumer() -> Continuation? {
            waiting.isEmpty ? nil : takers.popLast() ?? standbys.popLast()
        }
    }

    private let state = Mutex(State())

    package init() {}

    /// Adds elements in order. Callable from any thread; never blocks.
    package func add(contentsOf elements: some Sequence<Element>) {
        state.withLock { state -> Continuation? in
            if state.isFinished { return nil }
            if state.waiting.isEmpty { state.waitingSince = .now }
            state.waiting.append(contentsOf: elements)
            // One consumer is enough: it takes all waiting elements.
            return state.nextConsumer()
        }?.resume()
    }

    /// Adds one element.
    package func add(_ element: Element) { add(contentsOf: CollectionOfOne(element)) }

    /// Ends the queue. Consumers still receive the waiting elements; then `dequeue` returns an empty array.
    package func finish() {
        let sleeping = state.withLock { state in
            state.isFinished = true
            defer { (state.takers, state.standbys) = ([], []) }
            return state.takers + state.standbys
        }
        for consumer in sleeping { consumer.resume() }
    }

    /// The number of waiting elements.
    package var count: Int { state.withLock { $0.waiting.count } }

    /// Waits for at least one element and returns up to `limit`; an empty array means that the queue has ended.
    ///
    /// Runs on the caller's executor, so an actor with its own thread resumes on that thread.
    ///
    /// - Parameter standbyDelay: makes the caller a standby consumer. It receives elements only after no consumer has
    ///   taken any for so long.
    package func dequeue(upTo limit: Int, standbyDelay: Duration? = nil) async -> [Element] {
        while true {
            switch state.withLock({ $0.step(upTo: limit, standbyDelay: standbyDelay) }) {
            case .take(let elements, let next):
                next?.resume()
                return elements
            case .look(let time): try? await Task.sleep(until: time, clock: .continuous)
            case .sleep: await sleep(isStandby: standbyDelay != nil)
            }
        }
    }

    private func sleep(isStandby: Bool) async {
        await withCheckedContinuation { continuation in
            let isReady = state.withLock { state in
                if !state.waiting.isEmpty || state.isFinished { return true }
                if isStandby { state.standbys.append(continuation) } else { state.takers.append(continuation) }
                return false
            }
            if isReady { continuation.resume() }
        }
    }
}
