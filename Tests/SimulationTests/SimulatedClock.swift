import SyncModel

/// The wall clock of one machine: it is off, runs too fast or too slowly, and is set now and then. Leases and deadlines
/// do not go by it.
// Unchecked: see Simulation.
final class SimulatedClock: @unchecked Sendable {
    private let simulation: Simulation
    private var offset: Duration
    /// Seconds that it gains in a second.
    private let drift: Double
    private var setAt: Duration

    /// - Parameters:
    ///   - offset: the difference to the simulation's time now.
    ///   - drift: seconds that it gains in a second.
    init(_ simulation: Simulation, offset: Duration = .zero, drift: Double = 0) {
        self.simulation = simulation
        self.offset = offset
        self.drift = drift
        setAt = simulation.elapsed
    }

    var time: WallTime { simulation.wallTime + offset + (simulation.elapsed - setAt) * drift }

    /// The clock is set forward, or back.
    func jump(by change: Duration) {
        offset += (simulation.elapsed - setAt) * drift + change
        setAt = simulation.elapsed
    }
}
