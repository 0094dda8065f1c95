/// The devices of a load run, and the counts of their states.
struct LoadFleet {
    let devices: [LoadDevice]
    /// Whether the devices are to be connected now.
    var isWanted = false
    /// Number of devices that have received their backlog.
    var readyDevices = 0
    /// Number of devices with an unsent or unrecorded acknowledgement or report.
    var dirtyDevices = 0
    /// Connections that devices lost.
    var fallenDevices = 0
    /// Heartbeat interval from the gateway.
    var heartbeatSeconds = 60
    private var seconds = 0

    init(_ devices: [LoadDevice]) { self.devices = devices }

    /// Whether every device has its backlog and the gateway has recorded all acknowledgements and reports.
    var isSettled: Bool { readyDevices == devices.count && dirtyDevices == 0 }

    /// Whether no device has a connection.
    var isAway: Bool { devices.allSatisfy { $0.connection.phase == .away } }

    /// The device for a step's event, by the index of the event. The stride spreads consecutive events over the
    /// devices.
    func device(for index: Int) -> LoadDevice { devices[(index &* 7_919) % devices.count] }

    /// Advances the clock of the heartbeats by a second.
    ///
    /// - Returns: the devices that must send a heartbeat now.
    mutating func advanceSecond() -> [LoadDevice] {
        seconds += 1
        return devices.filter { $0.number % heartbeatSeconds == seconds % heartbeatSeconds }
    }
}
