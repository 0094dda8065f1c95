package import BusMessages
import Synchronization

/// Requests that wait for their reply: each ends exactly once, by its reply, its deadline or a lost connection.
package final class RequestLedger: Sendable {
    /// Receives the reply, or why there is none; called on the thread that ended the request and must not block.
    package typealias Completion = @Sendable (Result<Mss_Bus_V1_Reply, BusError>) -> Void

    private struct Pending {
        let deadline: ContinuousClock.Instant
        let complete: Completion
    }

    private struct State {
        var nextCorrelation: UInt64 = 1
        var pending: [UInt64: Pending] = [:]
    }

    private let state = Mutex(State())

    package init() {}

    /// Books a request and gives its correlation.
    package func open(deadline: ContinuousClock.Instant, _ complete: @escaping Completion) -> UInt64 {
        state.withLock { state in
            defer { state.nextCorrelation += 1 }
            state.pending[state.nextCorrelation] = Pending(deadline: deadline, complete: complete)
            return state.nextCorrelation
        }
    }

    /// Ends one request; a second answer, or one that comes too late, is dropped.
    package func close(_ correlation: UInt64, with result: Result<Mss_Bus_V1_Reply, BusError>) {
        state.withLock { $0.pending.removeValue(forKey: correlation) }?.complete(result)
    }

    /// Ends every request whose deadline has passed.
    package func expire(now: ContinuousClock.Instant) {
        let due = state.withLock { state -> [Pending] in
            let late = state.pending.filter { $0.value.deadline <= now }
            for correlation in late.keys { state.pending.removeValue(forKey: correlation) }
            return Array(late.values)
        }
        for request in due { request.complete(.failure(BusError(.unanswered, "no reply before the deadline"))) }
    }

    /// Ends every request: the connection that their replies would come over is gone.
    package func failAll(_ error: BusError) {
        let all = state.withLock { state -> [Pending] in
            defer { state.pending = [:] }
            return Array(state.pending.values)
        }
        for request in all { request.complete(.failure(error)) }
    }

    /// How many requests wait.
    package var count: Int { state.withLock { $0.pending.count } }
}
