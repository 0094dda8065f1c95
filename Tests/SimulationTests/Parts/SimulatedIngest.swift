import BackendCalls
import BusMessages
import ServiceKit
import SyncModel

/// An ingest: the real submission over the simulated broker. HTTP and the checks of a call have no state, so they are
/// left out.
// Unchecked: see Simulation.
final class SimulatedIngest: @unchecked Sendable {
    let process: SimulatedProcess
    private let submission: BusSubmission
    /// The callers that wait for an answer.
    private var open: [Answer] = []

    init(_ name: String, number: UInt64, broker: SimulatedBroker) {
        let process = SimulatedProcess(name, number: number, in: broker.simulation)
        self.process = process
        let bus = MessageBus(
            consumptions: [], replyKey: { "\($0.rawValue) \(process.id)" }, clock: process.clock,
            logger: process.logger,
            over: process.connecting(to: broker))
        submission = BusSubmission(bus: bus)
        process.every(.milliseconds(100)) { bus.expireRequests() }
    }

    /// Submits the pushes of a call, and answers with an outcome for each. A nil value means: the process died first.
    func submit(
        _ pushes: [PushRequest], _ configuration: SyncConfiguration, answer: @escaping ([PushOutcome]?) -> Void
    ) {
        let waiting = Answer(answer)
        open.removeAll(where: \.isGiven)
        open.append(waiting)
        process.perform { [self] in
            process.simulation.begin { [self] in
                let outcomes = await submission.submit(pushes.map { AcceptedPush($0, by: configuration) })
                process.isAlive ? process.perform { waiting.complete(with: outcomes) } : waiting.complete(with: nil)
            }
        }
    }

    /// Kills the process and closes its sockets, which its callers notice.
    func kill() {
        process.kill()
        for answer in open { answer.complete(with: nil) }
    }

    // Unchecked: see Simulation.
    private final class Answer: @unchecked Sendable {
        private let body: ([PushOutcome]?) -> Void
        private(set) var isGiven = false

        init(_ body: @escaping ([PushOutcome]?) -> Void) { self.body = body }

        func complete(with outcomes: [PushOutcome]?) {
            guard !isGiven else { return }
            isGiven = true
            body(outcomes)
        }
    }
}
