import SyncModel

/// The wall clock of one machine. It is wrong, runs too fast or too slowly, and is set now and then. Leases and
/// deadlines do not use it.
// Unchecked: see Simulation.
final class SimulatedClock: @unchecked Sendable {
    private let simulation: Simulation
    private var offset: Duration
    /// The seconds that the clock gains in a second.
    private let drift: Double
    private var setAt: Duration

    /// - Parameters:
    ///   - offset: the difference to the simulation's time now.
    ///   - drift: the seconds that the clock gains in a second.
    init(_ simulation: Simulation, offset: Duration = .zero, drift: Double = 0) {
        self.simulation = simulation
        self.offset = offset
        self.drift = drift
        setAt = simulation.elapsed
    }

    var time: WallTime { simulation.wallTime + offset + (simulation.elapsed - setAt) * drift }

    /// Sets the clock forward or back.
    func jump(by change: Duration) {
        offset += (simulation.elapsed - setAt) * drift + change
        setAt = simulation.elapsed
    }
}
