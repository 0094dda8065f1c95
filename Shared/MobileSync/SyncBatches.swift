/// `SyncOplogs` in batches; the same rules hold.
public struct SyncBatches: AsyncSequence, Sendable {
    public typealias Element = SyncBatch

    let engine: ClientEngine
    let board: ClientBoard
    let bizType: String
    let limit: Int

    /// Reads for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let reading: Reading
        let limit: Int
        var wakes: AsyncStream<Void>.Iterator

        /// Waits for the next batch; nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read or written.
        public mutating func next() async throws -> SyncBatch? {
            while !Task.isCancelled {
                if let batch = try await engine.nextBatch(of: reading.bizType, limit: limit) { return batch }
                guard await wakes.next(isolation: #isolation) != nil else { return nil }
            }
            return nil
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, reading: Reading(bizType: bizType, board: board), limit: limit,
            wakes: board.wakes.listen().makeAsyncIterator())
    }
}
