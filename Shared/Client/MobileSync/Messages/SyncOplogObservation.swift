/// The newest oplogs of a Sync ID now, and again after each change: arrivals, hand-outs, confirmations and recalls, and
/// another bound user.
///
/// The sequence has the newest state only: a reader that is slower than the changes skips states. It neither hands out
/// nor confirms oplogs, and the resend ladder does not run for it. It ends when the reading task is cancelled. Reads
/// run on the client's own queue.
public struct SyncOplogObservation: AsyncSequence, Sendable {
    public typealias Element = SyncOplogList

    let engine: ClientEngine
    let sharedState: ClientSharedState
    let bizType: String
    /// Only oplogs of this conversation; nil for all.
    let conversation: String?
    let limit: Int

    /// An iterator for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let bizType: String
        let conversation: String?
        let limit: Int
        let changeSignals: AsyncStream<Void>
        /// Sends the signals of commits while it exists.
        var commits: CommitObserver?
        var last: SyncOplogList?

        /// Waits for the next state. Returns nil when the task is cancelled.
        ///
        /// - Throws: `SyncError`: `store`; between two runs also `storeInUse`, while another client uses the store.
        public mutating func next() async throws -> SyncOplogList? {
            if commits == nil { commits = await engine.observeCommits() }
            while !Task.isCancelled {
                let list = try await engine.oplogList(of: bizType, conversation, limit: limit)
                if list != last {
                    last = list
                    return list
                }
                guard await changeSignals.nextElement() != nil else { return nil }
            }
            return nil
        }
    }

    /// Creates an iterator.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, bizType: bizType, conversation: conversation, limit: limit,
            changeSignals: sharedState.changeSignals.listen())
    }
}
