public import MobileSync

/// Where the data of entity types comes from; a `SyncClient` is one, and so are tests' own.
public protocol EntityFeed: Sendable {
    /// Gives the body all data of a Sync ID, in order and one batch at a time, and confirms each when the body returns;
    /// until the task is cancelled, then it returns.
    ///
    /// - Throws: What the body throws, without confirming; its own errors.
    func feed(_ bizType: String, to take: (EntityBatch) async throws -> Void) async throws

    /// Gives the body all answers to operations of these components, in the order in which they became known, and confirms
    /// each when the body returns; until the task is cancelled, then it returns.
    ///
    /// - Parameter userID: answers to this user's operations only; nil: of whoever is signed in.
    /// - Throws: What the body throws, without confirming; its own errors.
    func feedResults(
        of components: Set<String>, ofUser userID: String?, to take: (SyncOperationResult) async throws -> Void
    ) async throws

    /// Gives the body each state of the connection, until the task is cancelled.
    func feedStatus(to tell: (EntityConnectionStatus, String) -> Void) async

    /// Takes nothing of a Sync ID until `resume`.
    func suspend(_ bizType: String) async throws
    /// Takes a Sync ID again.
    func resume(_ bizType: String) async throws
    /// Has everything of a Sync ID sent again that is valid.
    func recover(_ bizType: String) async throws
    /// Takes no more of a Sync ID, and forgets what is here.
    func unsubscribe(_ bizType: String) async throws

    /// Lets there be a connection.
    func connect()
    /// Ends the connection.
    func disconnect()
}
