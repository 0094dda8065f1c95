import Synchronization

/// Limits the body bytes in memory over all connections (SEC4).
///
/// The ingest reads a body before it knows the caller; without a limit, any client could fill the memory.
final class BodyBudget: Sendable {
    /// The default limit, in bytes.
    static let defaultBytes = 512 << 20

    private let maximum: Int
    private let reserved = Atomic<Int>(0)

    /// - Parameter maximum: bytes of all bodies together.
    init(maximum: Int = defaultBytes) { self.maximum = maximum }

    /// Reserves bytes that have arrived.
    ///
    /// - Returns: false, with nothing reserved, when the limit is reached.
    func reserve(_ bytes: Int) -> Bool {
        guard reserved.add(bytes, ordering: .relaxed).newValue > maximum else { return true }
        release(bytes)
        return false
    }

    /// Releases the bytes of a call that is answered.
    func release(_ bytes: Int) { reserved.subtract(bytes, ordering: .relaxed) }
}
