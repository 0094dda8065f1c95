/// The connection of a load device, and its attempts to connect.
struct DeviceConnection {
    enum Phase { case away, connecting, ready }

    var phase = Phase.away
    /// Start of the connection attempt, in nanoseconds of the monotonic clock.
    private(set) var connectingSince: Int64 = 0
    /// The run closes the connection.
    var isLeaving = false
    /// Number of failed connection attempts. Each attempt selects another gateway.
    private(set) var failures = 0
    /// Back-off that the gateway's `Close` requests.
    var pauseMilliseconds: Int64 = 0

    /// Records the start of a connection attempt.
    mutating func begin(at now: Int64) {
        phase = .connecting
        connectingSince = now
        pauseMilliseconds = 0
        isLeaving = false
    }

    /// Records a failed connection attempt.
    mutating func fail() {
        phase = .away
        failures += 1
    }
}
