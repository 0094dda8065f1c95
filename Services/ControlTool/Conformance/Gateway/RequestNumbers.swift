import Synchronization

/// The numbers of one connection's requests: no two have the same.
final class RequestNumbers: Sendable {
    private let last = Mutex<UInt32>(0)

    /// The number of the next request, from 1 on.
    func next() -> UInt32 {
        last.withLock { last in
            last += 1
            return last
        }
    }
}
