import AMQP
import BusMessages
import Metrics
import ServiceKit
import Synchronization

/// Gathers the facts of all append lanes and hands them to the broker in groups, many times a second: a persistent
/// message for each group commit would cost broker, aggregator and database more than the push itself.
///
/// Commands are settled once the broker has the facts they caused, so that the death of this process makes another
/// writer find the duplicates and record them again. Facts that the broker does not take are kept and handed over again;
/// pushes do not wait for that.
final class FactBook: Sendable {
    private struct State {
        var facts: [Mss_Bus_V1_Fact] = []
        var deliveries: [AMQPDelivery] = []
        /// What the broker did not take, of commands that are settled.
        var kept: [Mss_Bus_V1_Fact] = []
    }

    /// Short, as the commands of this time count against the prefetch.
    private static let interval = Duration.milliseconds(20)
    /// How long the broker is left alone with what it did not take.
    private static let pause = Duration.seconds(1)
    /// Facts of about a minute at the highest rate; beyond this the oldest go, and are counted.
    private static let factsMax = 200_000
    private static let factsPerBody = 500

    private let state = Mutex(State())
    private let bus: MessageBus
    private let dropped = Counter(label: "mss_writer_facts_dropped")

    init(bus: MessageBus) { self.bus = bus }

    /// How many facts the broker did not take.
    var keptFacts: Int { state.withLock { $0.kept.count } }

    /// Takes facts, and the bodies of commands to settle after them.
    func add(_ facts: [Mss_Bus_V1_Fact], of deliveries: [AMQPDelivery]) {
        state.withLock { state in
            state.facts += facts
            state.deliveries += deliveries
        }
    }

    /// Hands on what was gathered, until cancelled: past the start of a shutdown, as the drain waits for settlements.
    func run() async {
        var tryAgainAt = ContinuousClock.now
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.interval)
            flush()
            guard .now >= tryAgainAt else { continue }
            tryAgainAt = .now + Self.pause
            flushKept()
        }
    }

    /// Hands on what was gathered.
    func flush() {
        let gathered = state.withLock { state in
            defer { (state.facts, state.deliveries) = ([], []) }
            return state
        }
        guard !gathered.facts.isEmpty else { return }
        let bus = bus
        do throws(AMQPError) {
            try bus.record(gathered.facts) { [self] isRecorded in
                if !isRecorded { keep(gathered.facts) }
                // Where the connection is gone this settles nothing, and the broker delivers the commands again unless
                // they are gone with its memory; facts that are told twice count once.
                bus.settle(gathered.deliveries, as: .accepted)
            }
        } catch {
            state.withLock { state in
                state.facts = gathered.facts + state.facts
                state.deliveries = gathered.deliveries + state.deliveries
            }
        }
    }

    /// Hands on once more what the broker did not take.
    func flushKept() {
        let kept = state.withLock { state in
            defer { state.kept = [] }
            return state.kept
        }
        for start in stride(from: 0, to: kept.count, by: Self.factsPerBody) {
            let facts = Array(kept[start..<min(start + Self.factsPerBody, kept.count)])
            do throws(AMQPError) {
                try bus.record(facts) { [self] isRecorded in if !isRecorded { keep(facts) } }
            } catch {
                keep(facts)
            }
        }
    }

    private func keep(_ facts: [Mss_Bus_V1_Fact]) {
        let excess = state.withLock { state in
            state.kept += facts
            let excess = max(0, state.kept.count - Self.factsMax)
            state.kept.removeFirst(excess)
            return excess
        }
        dropped.increment(by: excess)
    }
}
