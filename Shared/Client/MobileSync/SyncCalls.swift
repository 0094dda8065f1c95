import Concurrency

/// Calls to the backend whose answer the app needs at once.
public struct SyncCalls: Sendable {
    private let client: SyncClient

    /// Makes the calls of a client.
    public init(_ client: SyncClient) { self.client = client }

    /// Sends an operation of the bound user to the backend, and waits for its result.
    ///
    /// The service calls the backend as for `submit` (signed where the tenant has a key for that), after the operations
    /// that the user has already submitted. The backend executes an operation once, so a call can be repeated with the
    /// same operation. No sequence of `operationResults` has the result.
    ///
    /// - Parameters:
    ///   - operation: the call. Its limits are those of `submit`.
    ///   - limit: the longest wait for the result; 30 s by default. A cancelled task ends the wait, too.
    /// - Returns: the result. `imported` has the backend's answer, and only the first time. A refusal by the backend is
    ///   a result, with `isAccepted` false.
    /// - Throws: `CancellationError`; `SyncError`: `notSent` when the operation was not sent in time and never will be,
    ///   `unknownOutcome` when it was sent and has no result yet, `invalidArgument` when no user is bound, when the
    ///   operation breaks a limit, or when its id is that of a submitted operation or of another user's; `store`,
    ///   `storeFull`.
    @concurrent
    public func call(
        _ operation: SyncOperation, within limit: Duration = .seconds(30)
    ) async throws -> SyncOperationResult {
        guard let userID = client.sharedState.user?.userID else {
            throw SyncError(.invalidArgument, "no user is bound: bind a user before the call")
        }
        let dataSignals = client.sharedState.dataSignals.listen()
        try client.add([operation], ofUser: userID, isCall: true)
        let outbox = client.engine.outbox
        do {
            try await waitForResult(of: operation.id, dataSignals, within: limit)
        } catch {
            _ = try? outbox.endCall(operation.id)
            throw error
        }
        let (result, isWithdrawn) = try outbox.endCall(operation.id)
        if let result {
            try outbox.confirm(result)
            return result
        }
        throw isWithdrawn
            ? SyncError(.notSent, "the call was not sent within \(limit) and will not be: check the network")
            : SyncError(
                .unknownOutcome,
                "the call was sent, but has no answer within \(limit): repeat it with the operation \(operation.id)")
    }

    /// Waits until the result of an operation is known, at most for the limit.
    private func waitForResult(
        of id: String, _ dataSignals: AsyncStream<Void>, within limit: Duration
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { [engine = client.engine] group in
            group.addTask {
                while try engine.outbox.result(of: id) == nil {
                    guard await dataSignals.nextElement() != nil else { throw CancellationError() }
                }
            }
            group.addTask { try await Task.sleep(for: limit) }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
