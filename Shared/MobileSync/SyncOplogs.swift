/// Oplogs for the app as they come, in ascending id per channel; unconfirmed ones come again.
///
/// Again means: after 10 s, then after 20, 40, 80, 160 and 320 s, each with its `attempt`, and once after a restart;
/// then no more (spec D14). Only time counts in which there is a connection, the oplog's user is bound, and somebody
/// holds an iterator for it.
///
/// Read from the local store one by one: an app that takes its time costs no memory. It ends only when the reading
/// task is cancelled. Of two sequences that want the same oplog, one gets it.
public struct SyncOplogs: AsyncSequence, Sendable {
    public typealias Element = SyncOplog

    let engine: ClientEngine
    let board: ClientBoard
    let bizType: String?

    /// Reads for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let reading: Reading
        var wakes: AsyncStream<Void>.Iterator

        /// Waits for the next oplog; nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read or written.
        public mutating func next() async throws -> SyncOplog? {
            while !Task.isCancelled {
                if let oplog = try await engine.nextOplog(of: reading.bizType) { return oplog }
                guard await wakes.next(isolation: #isolation) != nil else { return nil }
            }
            return nil
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, reading: Reading(bizType: bizType, board: board),
            wakes: board.wakes.listen().makeAsyncIterator())
    }
}
