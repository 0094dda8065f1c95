import GRDB

/// The rows of a query now, and again after each commit that changes them: changes of the app, imports and results.
///
/// The sequence has the newest state only: a reader that is slower than the changes skips states. It ends when the
/// reading task is cancelled. Each iterator reads on threads of the store; the reader's thread does not wait.
public struct EntityObservation<Element: Sendable>: AsyncSequence, Sendable {
    /// Begins an observation that yields to the continuation.
    let start: @Sendable (AsyncThrowingStream<Element, any Error>.Continuation) -> AnyDatabaseCancellable

    /// An iterator for one task.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let states: AsyncThrowingStream<Element, any Error>
        /// The observation ends with the iterator.
        private let observation: AnyDatabaseCancellable
        private var hasEnded = false

        fileprivate init(
            _ states: AsyncThrowingStream<Element, any Error>, observation: AnyDatabaseCancellable
        ) {
            self.states = states
            self.observation = observation
        }

        /// Waits for the next state. Returns nil when the task is cancelled.
        ///
        /// - Throws: `EntityError`: those of `findWithQuery`. The sequence has then ended.
        public mutating func next() async throws -> Element? {
            guard !hasEnded else { return nil }
            do {
                // A loop in place of an iterator, whose next(isolation:) does not exist before iOS 18.
                for try await state in states { return state }
                return nil
            } catch {
                hasEnded = true
                throw EntityError.wrapping(error, "observing")
            }
        }
    }

    /// Begins the observation.
    public func makeAsyncIterator() -> AsyncIterator {
        let (states, continuation) = AsyncThrowingStream.makeStream(
            of: Element.self, throwing: (any Error).self, bufferingPolicy: .bufferingNewest(1))
        return AsyncIterator(states, observation: start(continuation))
    }
}

/// Observation of queries.
extension EntityStore {
    /// The rows of a query now, and again after each change.
    public func observe(_ query: EntityQuery) -> EntityObservation<[Entity]> { observation(of: query) { $0 } }

    /// The rows of a query now, and again after each change.
    public func observe<Record>(_ query: RecordQuery<Record>) -> EntityObservation<[EntityRow<Record>]> {
        observation(of: query.query) { entities in
            try entities.map { entity throws(EntityError) in try EntityRow(entity) }
        }
    }

    private func observation<State: Sendable>(
        of query: EntityQuery, _ state: @escaping @Sendable ([Entity]) throws -> State
    ) -> EntityObservation<State> {
        EntityObservation { [transactions] continuation in
            transactions.observe(
                { try $0.findWithQuery(query) }, onError: { continuation.finish(throwing: $0) },
                onChange: { entities in
                    do {
                        continuation.yield(try state(entities))
                    } catch {
                        continuation.finish(throwing: error)
                    }
                })
        }
    }
}
