package import BusMessages
import SyncModel
import Synchronization

/// Requests that wait for their reply. Each ends exactly once: by its reply, its deadline or a lost connection.
package final class RequestLedger: Sendable {
    /// Receives the reply or an error. Called on the thread that ended the request; must not block.
    package typealias Completion = @Sendable (Result<Mss_Bus_V1_Reply, BusError>) -> Void

    private struct Pending {
        let deadline: ContinuousClock.Instant
        let askedAt: ContinuousClock.Instant?
        let exchange: AnswerExchange
        let complete: Completion
    }

    private struct State {
        var nextCorrelation: UInt64 = 1
        var pending: [UInt64: Pending] = [:]
    }

    private let state = Mutex(State())
    private let databaseTime: SharedDatabaseClock?

    /// - Parameter databaseTime: updated from the replies that carry the database's time.
    package init(databaseTime: SharedDatabaseClock? = nil) { self.databaseTime = databaseTime }

    /// Registers a request and returns its correlation.
    ///
    /// - Parameter exchange: the exchange of the expected reply.
    package func open(
        deadline: ContinuousClock.Instant, answeredBy exchange: AnswerExchange, _ complete: @escaping Completion
    ) -> UInt64 {
        let askedAt = databaseTime?.instant
        return state.withLock { state in
            defer { state.nextCorrelation += 1 }
            state.pending[state.nextCorrelation] = Pending(
                deadline: deadline, askedAt: askedAt, exchange: exchange, complete: complete)
            return state.nextCorrelation
        }
    }

    /// Ends one request by its reply. A second reply or a late one is dropped.
    ///
    /// - Parameters:
    ///   - exchange: the exchange on which the reply arrived.
    ///   - databaseTimeMs: the database's time in the reply, also in a refusal; 0: not given.
    /// - Returns: false when the reply arrived on an unexpected exchange. The request then continues to wait.
    package func answer(
        _ correlation: UInt64, by exchange: AnswerExchange, with result: Result<Mss_Bus_V1_Reply, BusError>,
        databaseTimeMs: Int64 = 0
    ) -> Bool {
        let (request, isOurs) = state.withLock { state -> (Pending?, Bool) in
            guard let request = state.pending[correlation] else { return (nil, true) }
            guard request.exchange == exchange else { return (nil, false) }
            return (state.pending.removeValue(forKey: correlation), true)
        }
        if let askedAt = request?.askedAt {
            databaseTime?.observe(WallTime(milliseconds: databaseTimeMs), askedAt: askedAt)
        }
        request?.complete(result)
        return isOurs
    }

    /// Ends one request that was not sent or not accepted.
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

    /// Ends every request, because the connection that their replies need is lost.
    package func failAll(_ error: BusError) {
        let all = state.withLock { state -> [Pending] in
            defer { state.pending = [:] }
            return Array(state.pending.values)
        }
        for request in all { request.complete(.failure(error)) }
    }

    /// The number of requests that wait.
    package var count: Int { state.withLock { $0.pending.count } }
}
