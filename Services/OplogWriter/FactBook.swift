import AMQP
import BusMessages
import ServiceKit
import Synchronization

/// Gathers the facts of all append lanes and hands them to the broker in groups, many times a second: a persistent
/// message for each group commit would cost broker, aggregator and database more than the push itself.
///
/// Commands are settled once the broker has the facts they caused, so that the death of this process makes another
/// writer find the duplicates and record them again.
final class FactBook: Sendable {
    private struct State {
        var facts: [Mss_Bus_V1_Fact] = []
        var deliveries: [AMQPDelivery] = []
    }

    /// Short, as the commands of this time count against the prefetch.
    private static let interval = Duration.milliseconds(20)

    private let state = Mutex(State())
    private let bus: MessageBus

    init(bus: MessageBus) { self.bus = bus }

    /// Takes facts, and the bodies of commands to settle after them.
    func add(_ facts: [Mss_Bus_V1_Fact], of deliveries: [AMQPDelivery]) {
        state.withLock { state in
            state.facts += facts
            state.deliveries += deliveries
        }
    }

    /// Hands on what was gathered, until cancelled: past the start of a shutdown, as the drain waits for settlements.
    func run() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.interval)
            flush()
        }
    }

    private func flush() {
        let gathered = state.withLock { state in
            defer { state = State() }
            return state
        }
        guard !gathered.facts.isEmpty else { return }
        let bus = bus
        do throws(AMQPError) {
            try bus.record(gathered.facts) { _ in bus.settle(gathered.deliveries, as: .accepted) }
        } catch {
            // Kept for the next time. Where the connection is gone the broker delivers the commands again as well, and
            // facts that are told twice count once.
            state.withLock { state in
                state.facts = gathered.facts + state.facts
                state.deliveries = gathered.deliveries + state.deliveries
            }
        }
    }
}
