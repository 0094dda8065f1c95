/// The oplogs for the app, in ascending order of ids within each channel.
///
/// The client hands an unconfirmed oplog out again after 10, 20, 40, 80, 160 and 320 s, each time with a higher
/// `attempt`, and once after a restart of the app. Then it stops (D14). Time counts only while there is a connection,
/// the oplog's user is bound, and the app holds an iterator for its Sync ID.
///
/// The sequence reads the local store one oplog at a time, so a slow app needs no extra memory. It ends only when the
/// reading task is cancelled. When two sequences match an oplog, one of them receives it.
public struct SyncOplogs: AsyncSequence, Sendable {
    public typealias Element = SyncOplog

    let engine: ClientEngine
    let sharedState: ClientSharedState
    let bizType: String?

    /// An iterator for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let reading: SubscriptionToken
        let dataSignals: AsyncStream<Void>

        /// Waits for the next oplog. Returns nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read or written.
        public mutating func next() async throws -> SyncOplog? {
            while !Task.isCancelled {
                if let oplog = try await engine.nextOplog(of: reading.bizType) { return oplog }
                guard await dataSignals.nextElement() != nil else { return nil }
            }
            return nil
        }
    }

    /// Creates an iterator. While it exists, the client counts the Sync ID as read, and the resend ladder runs.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, reading: SubscriptionToken(bizType: bizType, sharedState: sharedState),
            dataSignals: sharedState.dataSignals.listen())
    }
}
