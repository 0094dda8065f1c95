import GRDB

/// The current value of cached data and each change of it, for `for try await`.
///
/// - A change of the app, of the backend and of a push counts. The passage of time alone does not: a copy that expires
///   later is reported with the next change.
/// - A consumer that is slower than the changes gets only the newest value.
/// - The sequence ends when its task is cancelled. It throws `ResourceError.userChanged` when another user is bound,
///   and `ResourceError.store` when the store cannot be read.
public struct ResourceObservation<Element: Sendable>: AsyncSequence, Sendable {
    private let start: @Sendable () -> AsyncIterator

    init<Value: Sendable>(
        _ values: @escaping @Sendable () -> AsyncValueObservation<Value>,
        transform: @escaping @Sendable (Value) throws -> Element
    ) {
        start = {
            // Only the one task that reads this iterator uses it.
            nonisolated(unsafe) var iterator = values().makeAsyncIterator()
            return AsyncIterator {
                do {
                    return try await iterator.next().map(transform)
                } catch {
                    throw ResourceStore.failure(error, of: "observing resources")
                }
            }
        }
    }

    /// Starts an observation of its own.
    public func makeAsyncIterator() -> AsyncIterator { start() }

    /// Reads the values one after the other.
    public struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let read: () async throws -> Element?

        /// The next value; nil at the end.
        public func next() async throws -> Element? { try await read() }
    }
}
