/// The network of a connection, and the results of pings on it. Not thread-safe.
struct ConnectionNetwork {
    private let device: LocalDevice
    private let sharedState: ClientSharedState
    private var path: NetworkPath?

    init(device: LocalDevice, sharedState: ClientSharedState) {
        self.device = device
        self.sharedState = sharedState
    }

    /// Records that a connection attempt begins on the present network.
    mutating func begin() { path = sharedState.network }

    /// Returns whether the device is still on the connection's network. The first reported network counts as the
    /// connection's.
    mutating func isCurrent() -> Bool {
        path = path ?? sharedState.network
        return path?.name == sharedState.network?.name
    }

    /// The stored results of pings on the network.
    var learnedHeartbeat: Heartbeat.Learned {
        // After a failed read, the heartbeat is learned again at the cost of a few pings.
        (try? device.heartbeat(of: name)) ?? Heartbeat.Learned()
    }

    /// Stores the results of pings on the network, if there are any.
    func save(_ heartbeat: Heartbeat?) {
        guard let learned = heartbeat?.learned, learned != Heartbeat.Learned() else { return }
        try? device.setHeartbeat(learned, of: name)
    }

    private var name: String { String((path?.name ?? "").prefix(100)) }
}
