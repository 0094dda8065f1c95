import Synchronization

@testable import ServiceKit

/// A steady clock that stands still until the test moves it; the wall clock is the machine's.
final class SteppedClock: Sendable {
    let start = ContinuousClock.now
    private let passed = Mutex(Duration.zero)

    /// The clocks for the code under test.
    var clock: ProcessClock {
        ProcessClock(now: { self.start + self.passed.withLock { $0 } }, wallTime: ProcessClock.system.wallTime)
    }

    /// Sets the time that has passed since the start.
    func set(_ passed: Duration) { self.passed.withLock { $0 = passed } }
}
