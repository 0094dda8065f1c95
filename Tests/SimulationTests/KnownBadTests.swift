#if KNOWN_BAD
    import DeliveryHistory
    import Foundation
    import SyncModel
    import Synchronization
    import Testing

    /// Each rule of delivery, broken on purpose, is seen to be broken: what the simulation finds counts for something.
    ///
    /// `MSS_KNOWN_BAD_SEEDS` says after how many seeds a broken rule counts as not seen, `MSS_KNOWN_BAD_ONLY` names one.
    @Suite("Known-bad builds", .serialized)
    struct KnownBadTests {
        private static let chosen = ProcessInfo.processInfo.environment["MSS_KNOWN_BAD_ONLY"]?.split(separator: ",")
        private static let switches = KnownBad.allCases.filter { one in
            !KnownBad.ofOneSession.contains(one) && chosen?.contains { $0 == one.rawValue } ?? true
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
#endif
