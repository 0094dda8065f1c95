import DeliveryHistory
import ServiceKit
import SyncModel
import TestSupport

/// Runs events on one thread by a virtual clock, in the order of their time, then of their creation. The seed decides
/// everything random, so the same seed makes the same run.
// Unchecked: a simulation and all its objects are used on one thread only.
final class Simulation: @unchecked Sendable {
    private struct Event {
        let at: Duration
        let number: UInt64
        let perform: () -> Void

        func precedes(_ other: Event) -> Bool { at != other.at ? at < other.at : number < other.number }
    }

    let seed: UInt64
    private(set) var elapsed = Duration.zero
    private var random: SeededGenerator
    private var lastNumber: UInt64 = 0
    /// A binary heap, the next event first.
    private var events: [Event] = []
    private let executor = SimulationExecutor()
    private let began = ContinuousClock.now
    /// A hash of all traced events.
    private(set) var traceHash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var eventCount = 0
    /// The traced events as text, for debugging. The value is nil when they are not kept.
    private(set) var log: [String]?

    /// - Parameter keepsLog: whether traced events are kept as text, which makes a run slower.
    init(seed: UInt64, keepsLog: Bool = false) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        log = keepsLog ? [] : nil
    }

    /// Whether each machine has a wall clock of its own. Otherwise all clocks agree.
    var clocksDiffer = false

    /// Makes the wall clock of a machine.
    func makeClock() -> SimulatedClock {
        guard clocksDiffer else { return SimulatedClock(self) }
        let hour = Duration.seconds(3_600)
        // Most clocks are right, some are wrong by minutes, and some by hours.
        let range = pick([Duration.milliseconds(200), .seconds(90), hour * 2])
        return SimulatedClock(self, offset: pick(.zero - range, range), drift: (chance() - 0.5) * 0.002)
    }

    var now: ContinuousClock.Instant { began + elapsed }
    /// The simulated time, which begins on a day in November 2026.
    var wallTime: WallTime { WallTime(milliseconds: 1_795_000_000_000) + elapsed }

    // MARK: Chance

    /// A random number from 0 to below 1.
    func chance() -> Double { Double(random.next() >> 11) / Double(1 << 53) }

    /// Decides at random, with this probability.
    func happens(_ probability: Double) -> Bool { probability > 0 && chance() < probability }

    /// A random number of the range.
    func pick(_ range: ClosedRange<Int>) -> Int { range.lowerBound + Int(chance() * Double(range.count)) }

    /// A random duration of the range.
    func pick(_ shortest: Duration, _ longest: Duration) -> Duration { shortest + (longest - shortest) * chance() }

    /// A random element. The array must not be empty.
    func pick<Element>(_ elements: [Element]) -> Element { elements[pick(0...elements.count - 1)] }

    // MARK: Events

    /// Performs an action after a delay.
    func after(_ delay: Duration, _ perform: @escaping () -> Void) {
        lastNumber += 1
        events.append(Event(at: elapsed + delay, number: lastNumber, perform: perform))
        var child = events.count - 1
        while child > 0, events[child].precedes(events[(child - 1) / 2]) {
            events.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Performs an action at this interval until it returns false.
    func every(_ interval: Duration, _ perform: @escaping () -> Bool) {
        after(interval) { [unowned self] in if perform() { every(interval, perform) } }
    }

    /// Begins an asynchronous function. Its steps are events of this simulation.
    func begin(_ body: @escaping @Sendable () async -> Void) {
        Task(executorPreference: executor) { await body() }
        executor.drain()
    }

    /// Runs the events of this duration, or fewer when the condition holds earlier.
    ///
    /// - Returns: whether the condition holds.
    @discardableResult
    func run(for duration: Duration, until isReached: () -> Bool = { false }) -> Bool {
        let end = elapsed + duration
        while !isReached() {
            guard let next = events.first, next.at <= end else {
                elapsed = end
                return isReached()
            }
            removeFirst()
            elapsed = max(elapsed, next.at)
            eventCount += 1
            next.perform()
            executor.drain()
        }
        return true
    }

    private func removeFirst() {
        events.swapAt(0, events.count - 1)
        events.removeLast()
        var parent = 0
        while true {
            let (left, right) = (parent * 2 + 1, parent * 2 + 2)
            var first = parent
            if left < events.count, events[left].precedes(events[first]) { first = left }
            if right < events.count, events[right].precedes(events[first]) { first = right }
            if first == parent { return }
            events.swapAt(parent, first)
            parent = first
        }
    }

    // MARK: Trace

    /// Adds an event to the trace hash and to the log.
    func trace(_ event: StaticString, _ numbers: Int64..., about name: @autoclosure () -> String = "") {
        event.withUTF8Buffer { for byte in $0 { fold(UInt64(byte)) } }
        fold(UInt64(bitPattern: elapsed.wholeNanoseconds))
        for number in numbers { fold(UInt64(bitPattern: number)) }
        guard log != nil else { return }
        let text = numbers.map(String.init).joined(separator: " ")
        log?.append("\(elapsed.wholeNanoseconds / 1_000) \(event) \(text) \(name())")
    }

    private func fold(_ value: UInt64) { traceHash = (traceHash ^ value) &* 0x0000_0100_0000_01b3 }
}

extension Duration {
    var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
