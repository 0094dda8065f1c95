/// A response whose body is read piece by piece.
public struct FileDownload: Sendable {
    /// The head of the response; its body is empty.
    public let response: ResourceResponse
    /// The body; for one reader.
    public let body: Body

    /// Makes a download.
    ///
    /// - Parameter pieces: the body. It throws `TransportError`.
    public init<Pieces: AsyncSequence & Sendable>(
        response: ResourceResponse, pieces: Pieces
    ) where Pieces.Element == [UInt8] {
        self.response = response
        body = Body {
            // Only the one task that reads this iterator uses it.
            nonisolated(unsafe) var iterator = pieces.makeAsyncIterator()
            return Body.AsyncIterator { try await iterator.next() }
        }
    }

    /// The pieces of a body.
    public struct Body: AsyncSequence, Sendable {
        fileprivate let start: @Sendable () -> AsyncIterator

        public func makeAsyncIterator() -> AsyncIterator { start() }

        /// Reads the pieces one after the other.
        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let read: () async throws -> [UInt8]?

            /// The next piece; nil at the end.
            public func next() async throws -> [UInt8]? { try await read() }
        }
    }
}
