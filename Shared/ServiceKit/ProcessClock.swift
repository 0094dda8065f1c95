package import SyncModel

/// The clocks that a process goes by; a simulation has its own.
package struct ProcessClock: Sendable {
    /// Goes on at one pace whatever is set, also while the machine sleeps: leases, deadlines (reliability R13).
    package let now: @Sendable () -> ContinuousClock.Instant
    /// Civil time: what is compared with validity, and what people read.
    package let wallTime: @Sendable () -> WallTime

    package init(
        now: @escaping @Sendable () -> ContinuousClock.Instant, wallTime: @escaping @Sendable () -> WallTime
    ) {
        self.now = now
        self.wallTime = wallTime
    }

    /// This machine's.
    package static let system = ProcessClock(now: { .now }, wallTime: { .now })
}
