/// Results of the bound user's operations, of all or of some components, in the order in which they became known. An
/// unconfirmed result appears again after the next start of the app.
///
/// The sequence reads the local store one result at a time. It ends only when the reading task is cancelled. When two
/// sequences match a result, one of them receives it.
public struct SyncOperationResults: AsyncSequence, Sendable {
    public typealias Element = SyncOperationResult

    let engine: ClientEngine
    let sharedState: ClientSharedState
    /// The value is nil for all components.
    let components: Set<String>?
    /// The value is nil for the present bound user.
    let userID: String?

    /// An iterator for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let components: Set<String>?
        let userID: String?
        let dataSignals: AsyncStream<Void>

        /// Waits for the next result. Returns nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read.
        public mutating func next() async throws -> SyncOperationResult? {
            while !Task.isCancelled {
                if let result = try await engine.nextResult(of: components, ofUser: userID) { return result }
                guard await dataSignals.nextElement() != nil else { return nil }
            }
            return nil
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, components: components, userID: userID,
            dataSignals: sharedState.dataSignals.listen())
    }
}
