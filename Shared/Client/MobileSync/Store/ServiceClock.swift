import GRDB
import SyncModel

/// The service's time and the time for signatures, as the device computes them. The local store keeps their differences
/// from the device's clock. Not thread-safe.
final class ServiceClock {
    private let file: LocalStoreFile
    /// The device's wall clock.
    private let deviceClock: @Sendable () -> WallTime
    /// The device's steady clock.
    private let now: @Sendable () -> ContinuousClock.Instant
    /// The service's time that the last connection of this process received, and the time of its receipt.
    private var receivedTime: (time: WallTime, at: ContinuousClock.Instant)?
    /// The difference of the service's time from the device's clock at the last connection; nil before the first one.
    /// It is used until a connection of this process receives the service's time.
    private var clockOffset: Duration?
    /// The difference of a gateway's clock from the device's clock when that gateway last refused a signature; nil
    /// before the first refusal. A gateway checks signatures with the clock of its machine, and not with the service's
    /// time.
    private var signingOffset: Duration?

    /// Call `load` before any other use.
    init(
        file: LocalStoreFile, deviceClock: @escaping @Sendable () -> WallTime,
        now: @escaping @Sendable () -> ContinuousClock.Instant
    ) {
        self.file = file
        self.deviceClock = deviceClock
        self.now = now
    }

    /// Reads the stored differences, and replaces the cached ones.
    func load() throws(SyncError) {
        let row = try file.access("reading the clock") { db in
            try Row.fetchOne(db, sql: "SELECT clock_offset_ms, signing_offset_ms FROM store")
        }
        func offset(_ milliseconds: Int64?) -> Duration? { milliseconds.map { .milliseconds($0) } }
        clockOffset = offset(row?[0])
        signingOffset = offset(row?[1])
    }

    /// The time for signatures: the clock of the gateway that last refused a signature, else the service's time, else
    /// the device's clock.
    var signingTime: WallTime {
        let deviceTime = deviceClock()
        return signingOffset.map { deviceTime + $0 } ?? serviceTime ?? deviceTime
    }

    /// Records the clock of a gateway that has refused a signature. The difference from the device's clock is stored,
    /// so the next process uses it too.
    ///
    /// - Throws: `SyncError.store`; this process uses the time nevertheless.
    func setSigningTime(_ time: WallTime) throws(SyncError) {
        let offset = Duration.milliseconds(time.milliseconds - deviceClock().milliseconds)
        signingOffset = offset
        try file.access("storing the signing time") { db in
            try db.execute(sql: "UPDATE store SET signing_offset_ms = ?", arguments: [offset.wholeMilliseconds])
        }
    }

    /// The service's time, which decides validity; nil before the first connection. A change of the device's clock does
    /// not affect it while this process runs.
    var serviceTime: WallTime? {
        if let receivedTime { return receivedTime.time + receivedTime.at.duration(to: now()) }
        return clockOffset.map { deviceClock() + $0 }
    }

    /// Records the service's time from a new connection. The difference from the device's clock is stored, and the next
    /// process uses it until it is connected.
    func setServiceTime(_ time: WallTime) throws(SyncError) {
        receivedTime = (time, now())
        let offset = Duration.milliseconds(time.milliseconds - deviceClock().milliseconds)
        let change = clockOffset.map { offset - $0 }
        clockOffset = offset
        // Differences below 5 s are network latency; they are not persisted.
        if let change, (.seconds(-5) ... .seconds(5)).contains(change) { return }
        try file.access("storing the clock offset") { db in
            try db.execute(sql: "UPDATE store SET clock_offset_ms = ?", arguments: [offset.wholeMilliseconds])
        }
    }
}
