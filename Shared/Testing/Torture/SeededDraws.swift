import DeliveryHistory
import Synchronization

/// The random numbers of one part of a torture run. The tasks of the part share them.
final class SeededDraws: Sendable {
    private let generator: Mutex<SeededGenerator>

    init(seed: UInt64) { generator = Mutex(SeededGenerator(seed: seed)) }

    /// The next number.
    func draw(_ range: Range<Int>) -> Int { generator.withLock { Int.random(in: range, using: &$0) } }

    /// Waits for a random time. It ends early when the task is cancelled.
    func pause(_ milliseconds: Range<Int>) async {
        try? await Task.sleep(for: .milliseconds(draw(milliseconds)))
    }
}
