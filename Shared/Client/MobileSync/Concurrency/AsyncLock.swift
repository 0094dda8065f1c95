import Concurrency

/// A lock for tasks: one task holds it at a time, in the order of the calls.
package final class AsyncLock: Sendable {
    private struct State {
        var isTaken = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = LockedValue(State())

    package init() {}

    /// Whether a task holds the lock now.
    package var isHeld: Bool { state.withLock { $0.isTaken } }

    /// Runs the body while the task holds the lock. Waits for the lock also when the task is cancelled: the tasks before
    /// it have deadlines.
    package func withLock<Value, Failure>(
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        await acquire()
        defer { release() }
        return try await body()
    }

    private func acquire() async {
        await withCheckedContinuation { continuation in
            let isMine = state.withLock { state in
                guard state.isTaken else {
                    state.isTaken = true
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isMine { continuation.resume() }
        }
    }

    /// Passes the lock to the next task.
    private func release() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard state.waiting.isEmpty else { return state.waiting.removeFirst() }
            state.isTaken = false
            return nil
        }
        next?.resume()
    }
}
