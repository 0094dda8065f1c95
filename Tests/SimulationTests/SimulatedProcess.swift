import AMQP
import Logging
import ServiceKit

/// A process of the service: it runs, stands still, or is dead for good; another one is started in its place.
// Unchecked: see Simulation.
final class SimulatedProcess: @unchecked Sendable {
    let name: String
    /// Unique among all processes and their starts.
    private let number: UInt64
    let simulation: Simulation
    let logger = Logger(label: "simulation") { _ in SwiftLogNoOpLogHandler() }
    private(set) var isAlive = true
    private var isPaused = false
    private var waiting: [() -> Void] = []
    private(set) var connection: SimulatedConnection?
    /// A broker takes a process that stands still this long for dead, and so does the process when it goes on.
    private static let heartbeats = Duration.seconds(30)
    private var pausedAt = Duration.zero
    /// What is done after everything that happens in the process.
    var afterwards: () -> Void = {}

    /// Of its machine.
    let wallClock: SimulatedClock

    init(_ name: String, number: UInt64, in simulation: Simulation) {
        self.name = name
        self.number = number
        self.simulation = simulation
        wallClock = simulation.makeClock()
    }

    /// Names its own queues. The process that is started in its place has another: it gets no answer to a dead one.
    var id: String { "\(name)-\(number)" }

    /// What it takes for its machine's clocks.
    var clock: ProcessClock {
        ProcessClock(
            now: { [unowned simulation] in simulation.now }, wallTime: { [wallClock] in wallClock.time })
    }

    /// What connects a bus of this process.
    func connecting(to broker: SimulatedBroker) -> MessageBus.Connecting {
        { [self] topology, consumptions, events in
            let made = SimulatedConnection(
                number: number, broker: broker, topology: topology, consumptions: consumptions, events: events,
                process: self)
            connection = made
            return made
        }
    }

    /// Does something in the process: at once, when it goes on, or never.
    func perform(_ body: @escaping () -> Void) {
        guard isAlive else { return }
        guard !isPaused else { return waiting.append(body) }
        body()
        afterwards()
    }

    /// Does something again and again while it lives.
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
