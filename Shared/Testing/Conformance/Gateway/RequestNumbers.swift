import Synchronization

/// The request numbers of one connection. Each number is used once.
final class RequestNumbers: Sendable {
    private let last = Mutex<UInt32>(0)

    /// The next number, from 1.
    func next() -> UInt32 {
        last.withLock { last in
            last += 1
            return last
        }
    }
}
