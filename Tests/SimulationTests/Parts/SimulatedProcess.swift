import AMQP
import Logging
import ServiceKit

/// A process of the service. It runs, is paused, or is dead; a new process replaces a dead one.
// Unchecked: see Simulation.
final class SimulatedProcess: @unchecked Sendable {
    let name: String
    /// The number of this start, unique among all processes.
    private let number: UInt64
    let simulation: Simulation
    let logger = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
    private(set) var isAlive = true
    private var isPaused = false
    private var waiting: [() -> Void] = []
    private(set) var connection: SimulatedConnection?
    /// The broker and the process end their connection after a pause of this length.
    private static let heartbeats = Duration.seconds(30)
    private var pausedAt = Duration.zero
    /// Called after every action of the process.
    var afterwards: () -> Void = {}

    /// The wall clock of the process's machine.
    let wallClock: SimulatedClock

    init(_ name: String, number: UInt64, in simulation: Simulation) {
        self.name = name
        self.number = number
        self.simulation = simulation
        wallClock = simulation.makeClock()
    }

    /// The process id, which names the process's own queues. A replacement has another id, so it does not receive
    /// replies to the dead process.
    var id: String { "\(name)-\(number)" }

    /// The clocks of the process.
    var clock: ProcessClock {
        ProcessClock(
            now: { [unowned simulation] in simulation.now }, wallTime: { [wallClock] in wallClock.time })
    }

    /// Returns the function that connects a bus of this process.
    func connecting(to broker: SimulatedBroker) -> MessageBus.Connecting {
        { [self] topology, consumptions, events in
            let made = SimulatedConnection(
                broker: broker, topology: topology, consumptions: consumptions, events: events,
                process: self)
            connection = made
            return made
        }
    }

    /// Performs an action in the process: at once, after a pause, or never when the process is dead.
    func perform(_ body: @escaping () -> Void) {
        guard isAlive else { return }
        guard !isPaused else { return waiting.append(body) }
        body()
        afterwards()
    }

    /// Performs an action at this interval until the process is dead.
    func every(_ interval: Duration, _ body: @escaping () -> Void) {
        simulation.every(interval) { [weak self] in
            guard let self, isAlive else { return false }
            if !isPaused { perform(body) }
            return true
        }
    }

    func kill() {
        guard isAlive else { return }
        isAlive = false
        waiting = []
        connection?.fall()
        connection = nil
    }

    func pause(for duration: Duration) {
        guard isAlive, !isPaused else { return }
        isPaused = true
        pausedAt = simulation.elapsed
        simulation.after(duration) { [weak self] in self?.resume() }
    }

    private func resume() {
        guard isAlive, isPaused else { return }
        isPaused = false
        if simulation.elapsed - pausedAt > Self.heartbeats { connection?.fall() }
        let waiting = waiting
        self.waiting = []
        for body in waiting { perform(body) }
    }
}
