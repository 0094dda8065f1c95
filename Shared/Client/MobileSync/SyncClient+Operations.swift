import SyncModel

/// Operations of the bound user and their results.
extension SyncClient {
    /// Stores operations of a user, and sends them in this order when there is a connection with the user bound.
    ///
    /// All operations are on the disk when the call returns, or none. Each operation gets one result later
    /// (`operationResults`). The client ignores an operation whose id it knows, so a repeated call does no harm.
    ///
    /// - Parameters:
    ///   - operations: the operations, in the order in which the backend executes them.
    ///   - userID: the user of the operations, bound now or not; nil for the bound user.
    /// - Throws: `SyncError.invalidArgument` when `userID` is nil and no user is bound, when `bind` would refuse the
    ///   user id, or when an operation breaks a limit (`SyncOperation.fault`); `store`; `storeFull`.
    public func submit(_ operations: [SyncOperation], ofUser userID: String? = nil) throws(SyncError) {
        guard let userID = userID ?? sharedState.user?.userID else {
            throw SyncError(.invalidArgument, "no user is bound: bind a user, or name one with ofUser")
        }
        try add(operations, ofUser: userID, isCall: false)
    }

    /// Checks and stores operations, and has the connection send them.
    func add(_ operations: [SyncOperation], ofUser userID: String, isCall: Bool) throws(SyncError) {
        try ArgumentCheck.identifier(userID, "userID")
        let time = engine.outbox.clock()
        let models = operations.map { $0.model(at: time) }
        for model in models {
            if let fault = model.fault { throw SyncError(.invalidArgument, "operation \(model.id): \(fault)") }
        }
        try engine.outbox.add(models, ofUser: userID, isCall: isCall)
        sharedState.timerSignals.send(())
    }

    /// Cancels those of a user's operations that the service cannot have received.
    ///
    /// - Parameters:
    ///   - ids: the ids of the operations.
    ///   - userID: the user of the operations; nil for the bound user.
    /// - Returns: the ids of the cancelled operations. The others have already been sent or are not known.
    /// - Throws: `SyncError.store`; then no operation is cancelled.
    public func cancelOperations(_ ids: [String], ofUser userID: String? = nil) throws(SyncError) -> [String] {
        guard let userID = userID ?? sharedState.user?.userID else { return [] }
        return try engine.outbox.cancel(ids, ofUser: userID)
    }

    /// Returns the bound user's operations that have no result yet, in the order of their submission.
    ///
    /// - Throws: `SyncError.store`.
    public func pendingOperations() throws(SyncError) -> [SyncOperation] {
        guard let userID = sharedState.user?.userID else { return [] }
        return try engine.outbox.pending(ofUser: userID).map(SyncOperation.init)
    }

    /// Results of the bound user's operations of all components, except `MSS_DIAGNOSIS` (diagnosis logs). The sequence
    /// repeats an unconfirmed result after a restart of the app.
    public func operationResults() -> SyncOperationResults {
        SyncOperationResults(engine: engine, sharedState: sharedState, components: nil, userID: nil)
    }

    /// Results of the bound user's operations of one component.
    public func operationResults(of component: String) -> SyncOperationResults { operationResults(of: [component]) }

    /// Results of operations of several components.
    ///
    /// - Parameters:
    ///   - components: the components.
    ///   - userID: gives results only while this user is bound; nil for the present bound user.
    public func operationResults(of components: Set<String>, ofUser userID: String? = nil) -> SyncOperationResults {
        SyncOperationResults(engine: engine, sharedState: sharedState, components: components, userID: userID)
    }

    /// Records that the app has processed a result. The client does not hand the result out again. The record is on the
    /// disk when the call returns.
    ///
    /// An operator can have a failed operation executed later. Its new result then appears in the sequence again.
    ///
    /// - Throws: `SyncError.store`; the client will hand the result out again.
    public func confirm(_ result: SyncOperationResult) async throws(SyncError) {
        try engine.outbox.confirm(result)
    }
}
