import Synchronization

/// How many streams are open; each gives its place back when nobody holds it any more.
final class StreamCount: Sendable {
    /// One stream.
    final class Place: Sendable {
        private let count: StreamCount

        fileprivate init(_ count: StreamCount) { self.count = count }

        deinit { count.open.subtract(1, ordering: .relaxed) }
    }

    private let open = Atomic<Int>(0)

    /// A place for one more; nil: there are as many as may be.
    func take(atMost maximum: Int) -> Place? {
        let place = open.add(1, ordering: .relaxed).newValue <= maximum
        guard place else {
            open.subtract(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
