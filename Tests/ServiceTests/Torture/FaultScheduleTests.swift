import Testing

@testable import Torture

/// The faults of a torture run and their times.
struct FaultScheduleTests {
    private static func rounds(_ seed: UInt64, _ count: Int) -> [[FaultSchedule.Planned]] {
        var schedule = FaultSchedule(seed: seed, kinds: FaultKind.all)
        return (0..<count).map { _ in schedule.nextRound() }
    }

    @Test("A seed draws the same faults each time, another seed others")
    func seeds() {
        #expect(Self.rounds(1, 200) == Self.rounds(1, 200))
        #expect(Self.rounds(1, 200) != Self.rounds(2, 200))
    }

    @Test("Each kind comes alone first, then several together and now and then none")
    func order() {
        let kinds = FaultKind.all
        let rounds = Self.rounds(7, kinds.count + 80)
        let alone = rounds.prefix(kinds.count)
        #expect(alone.allSatisfy { $0.count == 1 })
        #expect(Set(alone.flatMap { $0.map(\.kind) }) == Set(kinds))
        let mixed = rounds.dropFirst(kinds.count)
        #expect(mixed.count { $0.isEmpty } == 10)
        #expect(mixed.allSatisfy { $0.isEmpty || (1...6).contains($0.count) })
        #expect(mixed.allSatisfy { $0.count { $0.kind.needsDisk } <= 1 })
        #expect(mixed.allSatisfy { $0.map(\.start) == $0.map(\.start).sorted() })
    }

    @Test("Lasting faults get time, instant faults do not")
    func lengths() {
        for fault in Self.rounds(3, 300).joined() {
            #expect(fault.kind.lengths.contains(Int(fault.length / .milliseconds(1))))
        }
        for kind in FaultKind.all {
            #expect(kind.lengths.upperBound <= (kind == .standbyAway ? 60_000 : 30_000))
        }
    }

    @Test("Kinds have names of their own, and deliveries are repeated only where the broker speaks")
    func names() {
        let names = FaultKind.all.map(\.name)
        #expect(Set(names).count == names.count)
        #expect(names.filter { $0.hasPrefix("repeated deliveries") }.allSatisfy { $0.hasSuffix("-broker") })
        #expect(names.count >= 25)
        for name in [
            "locked channels", "relation lock over a week change", "synchronous standby away", "idle in transaction",
        ] {
            #expect(names.contains(name))
        }
    }
}
