import BackendCalls
import ServiceKit
import SyncModel

/// An ingest: the real submission over the simulated broker. What is before it, HTTP and the rules of calls, has no
/// state that outlives a call.
// Unchecked: see Simulation.
final class SimulatedIngest: @unchecked Sendable {
    let process: SimulatedProcess
    private let submission: BusSubmission
    /// Callers that wait.
    private var open: [Answer] = []

    init(_ name: String, number: UInt64, broker: SimulatedBroker) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        self.process = process
        let bus = MessageBus(
            consumptions: [], processID: process.id, clock: process.clock, logger: process.logger,
            over: process.connecting(to: broker))
        submission = BusSubmission(bus: bus)
        process.every(.milliseconds(100)) { bus.expireRequests() }
    }

    /// Takes a call and answers it, each push in its place: nil when the process died first, and the caller hears
    /// nothing.
    func submit(
        _ pushes: [PushRequest], _ configuration: SyncConfiguration, answer: @escaping ([PushOutcome]?) -> Void
    ) {
        let waiting = Answer(answer)
        open.removeAll(where: \.isGiven)
        open.append(waiting)
        process.perform { [self] in
            process.simulation.begin { [self] in
                let outcomes = await submission.submit(pushes, configuration: configuration)
                process.isAlive ? process.perform { waiting.give(outcomes) } : waiting.give(nil)
            }
        }
    }

    /// The process is gone, and with it its sockets: callers hear that.
    func kill() {
        process.kill()
        for answer in open { answer.give(nil) }
    }

    // Unchecked: see Simulation.
    private final class Answer: @unchecked Sendable {
        private let body: ([PushOutcome]?) -> Void
        private(set) var isGiven = false

        init(_ body: @escaping ([PushOutcome]?) -> Void) { self.body = body }

        func give(_ outcomes: [PushOutcome]?) {
            guard !isGiven else { return }
            isGiven = true
            body(outcomes)
        }
    }
}
