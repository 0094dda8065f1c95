/// Oplogs for the app as they come, in ascending id per channel; unconfirmed ones come again after a restart.
///
/// Read from the local store page by page: an app that takes its time costs no memory. It ends only when the reading
/// task is cancelled. Of two sequences that want the same oplog, one gets it.
public struct SyncOplogs: AsyncSequence, Sendable {
    public typealias Element = SyncOplog

    let engine: ClientEngine
    let board: ClientBoard
    let bizType: String?

    /// Reads for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let bizType: String?
        var wakes: AsyncStream<Void>.Iterator

        /// Waits for the next oplog; nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read.
        public mutating func next() async throws -> SyncOplog? {
            while !Task.isCancelled {
                if let oplog = try await engine.nextOplog(of: bizType) { return oplog }
                guard await wakes.next(isolation: #isolation) != nil else { return nil }
            }
            return nil
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(engine: engine, bizType: bizType, wakes: board.wakes.listen().makeAsyncIterator())
    }
}
