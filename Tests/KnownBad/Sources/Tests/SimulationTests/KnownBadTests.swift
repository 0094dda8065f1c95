import DeliveryHistory
import Foundation
import SyncModel
import Synchronization
import Testing

/// The simulation must detect each broken rule of delivery.
///
/// `MSS_KNOWN_BAD_SEEDS`: seeds after which a broken rule counts as not detected, 2,000 by default.
/// `MSS_KNOWN_BAD_ONLY`: the switches to turn on, separated by commas; also switches that another test detects.
@Suite("Known-bad builds", .serialized)
struct KnownBadTests {
    private static let chosen = ProcessInfo.processInfo.environment["MSS_KNOWN_BAD_ONLY"]?.split(separator: ",")
    private static let switches = KnownBad.allCases.filter { one in
        if let chosen { return chosen.contains { $0 == one.rawValue } }
        return !KnownBad.ofOneSession.contains(one) && !KnownBad.ofTests.contains { $0.rule == one }
    }

    @Test("a broken rule is seen", arguments: switches) func isSeen(rule: KnownBad) {
        KnownBad.broken = rule
        defer { KnownBad.broken = nil }
        let began = ContinuousClock.now
        let found = firstFault(within: SimulationTests.number("MSS_KNOWN_BAD_SEEDS", or: 2_000))
        let took = Double(began.duration(to: .now).wholeNanoseconds) / 1e9
        let promise = found.map { "\($0.fault.promise.rawValue)" } ?? "NOT SEEN"
        let seeds = found.map { "\($0.seeds)" } ?? "-"
        print("| \(rule.rawValue) | \(rule.rule) | \(promise) | \(seeds) | \(Int(took * 10) / 10) |")
        #expect(found != nil, "\(rule.rawValue)")
    }

    private func firstFault(within count: Int) -> (fault: HistoryFault, seeds: Int)? {
        let next = Atomic<Int>(1)
        let found = Mutex<(fault: HistoryFault, seeds: Int)?>(nil)
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            while found.withLock({ $0 == nil }) {
                let seed = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard seed <= count, let world = try? SimulationTests.run(UInt64(seed)) else { return }
                guard let fault = world.history.faults.first else { continue }
                found.withLock { $0 = $0.map { $0.seeds < seed ? $0 : (fault, seed) } ?? (fault, seed) }
            }
        }
        return found.withLock { $0 }
    }
}

@Suite("Known-bad builds: rules that have a test of their own") struct KnownBadTableTests {
    /// `deploy/known-bad` reads these lines, and runs each test with its rule broken.
    @Test("a rule is broken in one place: in the walk, in a test, or in the simulation") func table() {
        for (rule, test) in KnownBad.ofTests { print("= \(rule.rawValue) \(test) \(rule.rule)") }
        let rules = KnownBad.ofTests.map(\.rule)
        #expect(Set(rules).count == rules.count && Set(rules).isDisjoint(with: KnownBad.ofOneSession))
    }
}
