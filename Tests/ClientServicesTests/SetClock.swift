import Foundation
import Synchronization

/// The time that a test sets: the device's clock and the steady clock together.
final class SetClock: Sendable {
    private let state: Mutex<Date>
    private let start = ContinuousClock.now
    private let startDate: Date

    init(_ date: Date = Date(timeIntervalSince1970: 1_800_000_000)) {
        state = Mutex(date)
        startDate = date
    }

    var date: Date { state.withLock { $0 } }
    var instant: ContinuousClock.Instant { start + .seconds(date.timeIntervalSince(startDate)) }
    var milliseconds: Int64 { Int64((date.timeIntervalSince1970 * 1_000).rounded()) }

    func advance(_ seconds: Double) { state.withLock { $0 += seconds } }
    func set(_ date: Date) { state.withLock { $0 = date } }
}
