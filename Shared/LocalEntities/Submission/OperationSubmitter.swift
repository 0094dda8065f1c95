public import MobileSync

/// Takes operations up; a `SyncClient` does, and tests do.
public protocol OperationSubmitter: Sendable {
    /// Takes operations, in this order; they are durable when this returns. One whose id it knows is left alone.
    ///
    /// - Parameter userID: whose they are, whoever is signed in now; nil: of whoever is.
    func submit(_ operations: [SyncOperation], ofUser userID: String?) async throws

    /// Takes back operations that were not sent yet, with their children.
    ///
    /// - Parameter userID: as with `submit`.
    /// - Returns: the ids of those that will not be sent.
    func cancelOperations(_ ids: [String], ofUser userID: String?) async throws -> [String]
}

extension SyncClient: OperationSubmitter {}
