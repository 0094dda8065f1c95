import DeliveryHistory
import ServiceKit
import SyncModel
import TestSupport

/// One thread and one virtual clock: events in the order of their time, then in that of their making. Everything that
/// is left to chance is drawn from the seed, so the same seed makes the same run.
// Unchecked: a simulation and all that lives in it are on the one thread that runs it.
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
    /// What has happened, folded into one number.
    private(set) var traceHash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var eventCount = 0
    /// The last lines of what has happened, for who looks for a fault; nil: they are not kept.
    private(set) var log: [String]?

    /// - Parameter keepsLog: whether what happens is kept as text, which takes its time.
    init(seed: UInt64, keepsLog: Bool = false) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
        log = keepsLog ? [] : nil
    }

    /// Whether each machine has a wall clock of its own; otherwise all agree.
    var clocksDiffer = false

    /// The wall clock of another machine.
    func makeClock() -> SimulatedClock {
        guard clocksDiffer else { return SimulatedClock(self) }
        let hour = Duration.seconds(3_600)
        // Most machines are set right, some are minutes off, and some hours.
        let range = pick([Duration.milliseconds(200), .seconds(90), hour * 2])
        return SimulatedClock(self, offset: pick(.zero - range, range), drift: (chance() - 0.5) * 0.002)
    }

    var now: ContinuousClock.Instant { began + elapsed }
    /// A day in November 2026 and so much later.
    var wallTime: WallTime { WallTime(milliseconds: 1_795_000_000_000) + elapsed }

    // MARK: Chance

    /// From 0 to below 1.
    func chance() -> Double { Double(random.next() >> 11) / Double(1 << 53) }

    /// Whether something happens that happens so often.
    func happens(_ probability: Double) -> Bool { probability > 0 && chance() < probability }

    /// One of the range.
    func pick(_ range: ClosedRange<Int>) -> Int { range.lowerBound + Int(chance() * Double(range.count)) }

    /// A duration in the range.
    func pick(_ shortest: Duration, _ longest: Duration) -> Duration { shortest + (longest - shortest) * chance() }

    /// One of the elements, which are not none.
    func pick<Element>(_ elements: [Element]) -> Element { elements[pick(0...elements.count - 1)] }

    // MARK: Events

    /// Does something so much later.
    func after(_ delay: Duration, _ perform: @escaping () -> Void) {
        lastNumber += 1
        events.append(Event(at: elapsed + delay, number: lastNumber, perform: perform))
        var child = events.count - 1
        while child > 0, events[child].precedes(events[(child - 1) / 2]) {
            events.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    /// Does something again and again while it says that it goes on.
    func every(_ interval: Duration, _ perform: @escaping () -> Bool) {
        after(interval) { [unowned self] in if perform() { every(interval, perform) } }
    }

    /// Begins something asynchronous, whose steps are events of this simulation.
    func begin(_ body: @escaping @Sendable () async -> Void) {
        Task(executorPreference: executor) { await body() }
        executor.drain()
    }

    /// Lets so much time pass, or less when a condition comes to hold.
    ///
    /// - Returns: whether it has come to hold.
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

    /// Notes that something has happened.
    func note(_ what: StaticString, _ numbers: Int64..., about name: @autoclosure () -> String = "") {
        what.withUTF8Buffer { for byte in $0 { fold(UInt64(byte)) } }
        fold(UInt64(bitPattern: elapsed.wholeNanoseconds))
        for number in numbers { fold(UInt64(bitPattern: number)) }
        guard log != nil else { return }
        let text = numbers.map(String.init).joined(separator: " ")
        log?.append("\(elapsed.wholeNanoseconds / 1_000) \(what) \(text) \(name())")
    }

    private func fold(_ value: UInt64) { traceHash = (traceHash ^ value) &* 0x0000_0100_0000_01b3 }
}

extension Duration {
    var wholeNanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
