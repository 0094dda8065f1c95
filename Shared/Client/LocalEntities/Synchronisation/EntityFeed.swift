public import MobileSync

/// The source of an entity store's data, results and connection states. `SyncClient` implements it.
public protocol EntityFeed: Sendable {
    /// Passes all data of a Sync ID to the body, in order and one batch at a time, until the task is cancelled, then
    /// returns. A batch is confirmed when the body returns.
    ///
    /// - Throws: the errors of the body, without a confirmation; its own errors.
    func feed(_ bizType: String, to body: (EntityBatch) async throws -> Void) async throws

    /// Passes all results of operations of these components to the body, in the order in which they became known, until
    /// the task is cancelled, then returns. A result is confirmed when the body returns.
    ///
    /// - Parameter userID: only results of this user's operations; nil: of the bound user.
    /// - Throws: the errors of the body, without a confirmation; its own errors.
    func feedResults(
        of components: Set<String>, ofUser userID: String?, to body: (SyncOperationResult) async throws -> Void
    ) async throws

    /// Passes each state of the connection to the body, until the task is cancelled.
    func feedStatus(to body: (EntityConnectionStatus, String) -> Void) async

    /// Suspends a Sync ID: no data arrives until `resume`.
    func suspend(_ bizType: String) async throws
    /// Resumes a suspended Sync ID.
    func resume(_ bizType: String) async throws
    /// Requests all valid oplogs of a Sync ID again.
    func recover(_ bizType: String) async throws
    /// Ends the subscription of a Sync ID and deletes its data in the client.
    func unsubscribe(_ bizType: String) async throws

    /// Allows a connection.
    func connect()
    /// Ends the connection and allows no other.
    func disconnect()
}
