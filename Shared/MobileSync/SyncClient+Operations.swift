import SyncModel

/// Operations of the bound user, up to the backend, and what became of them.
extension SyncClient {
    /// Takes operations of a user, in this order: all of them are on the disk when it returns, or none. They go up when
    /// there is a connection with the user bound; then each has a result. An id that is known is left alone.
    ///
    /// - Parameter userID: whose they are, bound now or not; nil: the bound user's.
    /// - Throws: `SyncError.invalidArgument` for nil without a bound user, for a user id that `bind` refuses, or when an
    ///   operation breaks a limit; `store`, also when there is no room.
    public func submit(_ operations: [SyncOperation], ofUser userID: String? = nil) throws(SyncError) {
        guard let userID = userID ?? board.user?.userID else {
            throw SyncError(.invalidArgument, "an operation is somebody's: bind a user first")
        }
        try Self.check(userID, "userID")
        let time = engine.outbox.clock()
        let models = operations.map { $0.model(at: time) }
        for model in models {
            if let fault = model.fault { throw SyncError(.invalidArgument, "operation \(model.id): \(fault)") }
        }
        try engine.outbox.add(models, ofUser: userID)
        board.alarms.send(())
    }

    /// Takes back those of a user's operations that the service cannot have.
    ///
    /// - Parameter userID: whose they are; nil: the bound user's.
    /// - Returns: the ids of those that were taken back; the others have been sent, or are not known.
    /// - Throws: `SyncError.store`; then none was taken back.
    public func cancelOperations(_ ids: [String], ofUser userID: String? = nil) throws(SyncError) -> [String] {
        guard let userID = userID ?? board.user?.userID else { return [] }
        return try engine.outbox.cancel(ids, ofUser: userID)
    }

    /// The bound user's operations that have no result yet, in their order.
    ///
    /// - Throws: `SyncError.store`.
    public func pendingOperations() throws(SyncError) -> [SyncOperation] {
        guard let userID = board.user?.userID else { return [] }
        return try engine.outbox.pending(ofUser: userID).map(SyncOperation.init)
    }

    /// Results of the bound user's operations, each until it is confirmed; not those of diagnosis logs (`MSS_DIAGNOSIS`).
    public func operationResults() -> SyncOperationResults {
        SyncOperationResults(engine: engine, board: board, components: nil, userID: nil)
    }

    /// The same of one component's operations.
    public func operationResults(of component: String) -> SyncOperationResults { operationResults(of: [component]) }

    /// The same of several components' operations.
    ///
    /// - Parameter userID: only while this user is bound; nil: of whoever is.
    public func operationResults(of components: Set<String>, ofUser userID: String? = nil) -> SyncOperationResults {
        SyncOperationResults(engine: engine, board: board, components: components, userID: userID)
    }

    /// Notes that the app has processed a result: it never comes again. Durable when this returns. An operation that an
    /// operator had done after all has another result, which comes as its first one did.
    ///
    /// - Throws: `SyncError.store`; the result will come again.
    public func confirm(_ result: SyncOperationResult) async throws(SyncError) {
        try engine.outbox.confirm(result)
    }
}
