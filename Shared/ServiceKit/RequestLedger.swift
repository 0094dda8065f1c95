package import BusMessages
import SyncModel
import Synchronization

/// Requests that wait for their reply: each ends exactly once, by its reply, its deadline or a lost connection.
package final class RequestLedger: Sendable {
    /// Receives the reply, or why there is none; called on the thread that ended the request and must not block.
    package typealias Completion = @Sendable (Result<Mss_Bus_V1_Reply, BusError>) -> Void

    private struct Pending {
        let deadline: ContinuousClock.Instant
        let askedAt: ContinuousClock.Instant?
        let exchange: AnswerExchange?
        let complete: Completion
    }

    private struct State {
        var nextCorrelation: UInt64 = 1
        var pending: [UInt64: Pending] = [:]
    }

    private let state = Mutex(State())
    private let databaseTime: SharedDatabaseClock?

    /// - Parameter databaseTime: takes the database's time from the replies that carry it.
    package init(databaseTime: SharedDatabaseClock? = nil) { self.databaseTime = databaseTime }

    /// Books a request and gives its correlation.
    ///
    /// - Parameter exchange: by which its answer comes; nil: straight back.
    package func open(
        deadline: ContinuousClock.Instant, answeredBy exchange: AnswerExchange? = nil, _ complete: @escaping Completion
    ) -> UInt64 {
        let askedAt = databaseTime?.instant
        return state.withLock { state in
            defer { state.nextCorrelation += 1 }
            state.pending[state.nextCorrelation] = Pending(
                deadline: deadline, askedAt: askedAt, exchange: exchange, complete: complete)
            return state.nextCorrelation
        }
    }

    /// Ends one request by its answer; a second answer, or one that comes too late, is dropped.
    ///
    /// - Parameters:
    ///   - exchange: by which the answer came; nil: straight back.
    ///   - databaseTimeMs: the database's time as the answer tells it, a refusal too; 0: it does not.
    /// - Returns: false when the request was put to somebody else, who answers by another exchange: it waits on.
    package func answer(
        _ correlation: UInt64, by exchange: AnswerExchange?, with result: Result<Mss_Bus_V1_Reply, BusError>,
        databaseTimeMs: Int64 = 0
    ) -> Bool {
        let (request, isOurs) = state.withLock { state -> (Pending?, Bool) in
            #if KNOWN_BAD
                let correlation =
                    KnownBad.correlationIgnored.isOn
                    ? state.pending.filter { $0.value.exchange == exchange }.keys.min() ?? correlation : correlation
            #endif
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

    /// Ends one request that could not be sent.
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
