import Foundation
package import SyncModel

/// The clocks of a process. A simulation replaces them.
package struct ProcessClock: Sendable {
    /// The steady clock, which also counts while the machine sleeps. For leases and deadlines (R13).
    package let now: @Sendable () -> ContinuousClock.Instant
    /// The wall clock, for signature timestamps and for people.
    package let wallTime: @Sendable () -> WallTime

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant, wallTime: @escaping @Sendable () -> WallTime
    ) {
        self.now = now
        self.wallTime = wallTime
    }

    /// The clocks of this machine.
    package static let system = ProcessClock(now: { .now }, wallTime: { .now })
}

extension WallTime {
    /// The time of this machine's wall clock.
    package static var now: WallTime {
        WallTime(milliseconds: Int64((Date.now.timeIntervalSince1970 * 1_000).rounded(.down)))
    }
}
