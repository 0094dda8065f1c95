package import BusMessages
import Synchronization

/// Collects the results of several requests.
package final class ReplyCollection: Sendable {
    private struct State {
        var results: [Result<Mss_Bus_V1_Reply, BusError>?]
        var left: Int
    }

    private let state: Mutex<State>
    private let whenComplete: @Sendable ([Result<Mss_Bus_V1_Reply, BusError>]) -> Void

    /// - Parameter whenComplete: called once with all results in order; at once when `count` is 0.
    package init(count: Int, whenComplete: @escaping @Sendable ([Result<Mss_Bus_V1_Reply, BusError>]) -> Void) {
        state = Mutex(State(results: Array(repeating: nil, count: count), left: count))
        self.whenComplete = whenComplete
        if count == 0 { whenComplete([]) }
    }

    /// Records the result of one request.
    package func add(_ result: Result<Mss_Bus_V1_Reply, BusError>, at index: Int) {
        let complete = state.withLock { state -> [Result<Mss_Bus_V1_Reply, BusError>]? in
            state.results[index] = result
            state.left -= 1
            return state.left == 0 ? state.results.compactMap(\.self) : nil
        }
        if let complete { whenComplete(complete) }
    }
}
