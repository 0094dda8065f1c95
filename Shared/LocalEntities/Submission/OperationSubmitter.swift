/// Takes operations up; a `SyncClient` does, and tests do.
public protocol OperationSubmitter: Sendable {
    /// Takes operations, in this order; they are durable when this returns. One whose id it knows is left alone.
    func submit(_ operations: [EntityOperation]) async throws

    /// Takes back operations that were not sent yet, with their children.
    ///
    /// - Returns: the ids of those that will not be sent.
    func cancel(_ ids: [String]) async throws -> [String]
}
