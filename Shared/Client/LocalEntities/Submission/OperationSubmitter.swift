public import MobileSync

/// Sends operations to the server. `SyncClient` implements it.
public protocol OperationSubmitter: Sendable {
    /// Accepts operations in this order. They must be durable when the call returns. The submitter must ignore an
    /// operation whose id it already has.
    ///
    /// - Parameter userID: the user of the operations; nil: the bound user.
    func submit(_ operations: [SyncOperation], ofUser userID: String?) async throws

    /// Withdraws operations that were not sent yet, with their children.
    ///
    /// - Parameter userID: as for `submit`.
    /// - Returns: the ids of the withdrawn operations.
    func cancelOperations(_ ids: [String], ofUser userID: String?) async throws -> [String]

    /// Whether the server has not replied about parameters of these Sync IDs.
    ///
    /// - Parameter userID: as for `submit`.
    func hasPendingParameters(of bizTypes: Set<String>, ofUser userID: String?) throws -> Bool
}

extension SyncClient: OperationSubmitter {}
