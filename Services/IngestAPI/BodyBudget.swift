import Synchronization

/// How many bytes of bodies are in memory over all connections: they are read before anybody knows who sends them, so
/// that strangers could otherwise fill the memory (reliability SEC4).
final class BodyBudget: Sendable {
    /// Bytes of all bodies by default.
    static let defaultBytes = 512 << 20

    private let maximum: Int
    private let held = Atomic<Int>(0)

    /// - Parameter maximum: bytes of all bodies together.
    init(maximum: Int = defaultBytes) { self.maximum = maximum }

    /// Takes bytes that have arrived; false, and none are taken: there are too many.
    func take(_ bytes: Int) -> Bool {
        guard held.add(bytes, ordering: .relaxed).newValue > maximum else { return true }
        giveBack(bytes)
        return false
    }

    /// Gives back what a call had taken, when it is answered.
    func giveBack(_ bytes: Int) { held.subtract(bytes, ordering: .relaxed) }
}
