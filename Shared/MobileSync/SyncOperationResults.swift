/// Results of the bound user's operations, of all components or of some, in the order in which they became known; what
/// is not confirmed comes again at the next start of the app.
///
/// Read from the local store one by one. It ends only when the reading task is cancelled. Of two sequences that want
/// the same result, one gets it.
public struct SyncOperationResults: AsyncSequence, Sendable {
    public typealias Element = SyncOperationResult

    let engine: ClientEngine
    let board: ClientBoard
    /// Nil: all.
    let components: Set<String>?
    /// Nil: whoever is bound.
    let userID: String?

    /// Reads for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        let engine: ClientEngine
        let components: Set<String>?
        let userID: String?
        var wakes: AsyncStream<Void>.Iterator

        /// Waits for the next result; nil when the task is cancelled.
        ///
        /// - Throws: `SyncError.store` when the local store cannot be read.
        public mutating func next() async throws -> SyncOperationResult? {
            while !Task.isCancelled {
                if let result = try await engine.nextResult(of: components, ofUser: userID) { return result }
                guard await wakes.next(isolation: #isolation) != nil else { return nil }
            }
            return nil
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(
            engine: engine, components: components, userID: userID, wakes: board.wakes.listen().makeAsyncIterator())
    }
}
