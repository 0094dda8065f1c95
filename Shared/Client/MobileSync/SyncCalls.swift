import Concurrency

/// Calls to the backend whose answer the app needs at once.
public struct SyncCalls: Sendable {
    private let client: SyncClient

    /// Makes the calls of a client.
    public init(_ client: SyncClient) { self.client = client }

    /// Sends an operation of the bound user to the backend, and waits for its result.
    ///
    /// The service calls the backend with a signed request, as for `submit`, after the operations that the user has
    /// already submitted. The backend executes an operation once, so a call can be repeated with the same operation.
    /// No sequence of `operationResults` has the result.
    ///
    /// - Parameters:
    ///   - operation: the call. Its limits are those of `submit`.
    ///   - limit: the longest wait for the result; 30 s by default. A cancelled task ends the wait, too.
    /// - Returns: the result. `imported` has the backend's answer, and only the first time. A refusal by the backend is
    ///   a result, with `isAccepted` false.
    /// - Throws: `CancellationError`; `SyncError`: `notSent` when the operation was not sent in time and never will be,
    ///   `unknownOutcome` when it was sent and has no result yet, `invalidArgument` when no user is bound or the
    ///   operation breaks a limit, `store`.
    @concurrent
    public func call(
        _ operation: SyncOperation, within limit: Duration = .seconds(30)
    ) async throws -> SyncOperationResult {
        guard let userID = client.sharedState.user?.userID else {
            throw SyncError(.invalidArgument, "no user is bound: bind a user before the call")
        }
        let dataSignals = client.sharedState.dataSignals.listen()
        try client.add([operation], ofUser: userID, isCall: true)
        do {
            if let result = try await result(of: operation.id, dataSignals, within: limit) {
                try client.engine.outbox.confirm(result)
                return result
            }
        } catch is CancellationError {
            _ = try client.engine.outbox.cancel([operation.id], ofUser: userID)
            throw CancellationError()
        }
        guard try client.engine.outbox.cancel([operation.id], ofUser: userID).isEmpty else {
            throw SyncError(.notSent, "the call was not sent within \(limit) and will not be: check the network")
        }
        throw SyncError(
            .unknownOutcome,
            "the call was sent, but has no answer within \(limit): repeat it with the operation \(operation.id)")
    }

    /// Returns the result of an operation; nil if it is not known in time.
    private func result(
        of id: String, _ dataSignals: AsyncStream<Void>, within limit: Duration
    ) async throws -> SyncOperationResult? {
        try await withThrowingTaskGroup(of: SyncOperationResult?.self) { [engine = client.engine] group in
            group.addTask {
                while true {
                    if let result = try engine.outbox.result(of: id) { return result }
                    guard await dataSignals.nextElement() != nil else { throw CancellationError() }
                }
            }
            group.addTask {
                try await Task.sleep(for: limit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
    }
}
