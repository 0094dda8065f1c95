/// A sequence of batches. The rules of `SyncOplogs` apply.
public struct SyncBatches: AsyncSequence, Sendable {
    public typealias Element = SyncBatch

    let engine: ClientEngine
    let sharedState: ClientSharedState
    let bizType: String
    let limit: Int

    /// An iterator for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let reading: SubscriptionToken
        let limit: Int
        let dataSignals: AsyncStream<Void>

        /// Waits for the next batch. Returns nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read or written.
        public mutating func next() async throws -> SyncBatch? {
            while !Task.isCancelled {
                if let batch = try await engine.nextBatch(of: reading.bizType, limit: limit) { return batch }
                guard await dataSignals.nextElement() != nil else { return nil }
            }
            return nil
        }
    }

    /// Creates an iterator. While it exists, the client counts the Sync ID as read, and the resend ladder runs.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, reading: SubscriptionToken(bizType: bizType, sharedState: sharedState), limit: limit,
            dataSignals: sharedState.dataSignals.listen())
    }
}
