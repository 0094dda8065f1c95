import SyncModel
import Testing

@Suite("A device session that anything happens to", .serialized)
struct SessionWalkTests {
    private static let seeds = UInt64(1)...8_000

    @Test("every event in every state, by seed: no session does what none may do")
    func everyPair() {
        var met: Set<SessionWalk.Pair> = []
        for seed in Self.seeds {
            var walk = SessionWalk(seed: seed)
            walk.walk(steps: 60)
            met.formUnion(walk.met)
            #expect(walk.faults.isEmpty, "seed \(seed): \(walk.faults)")
        }
        let pairs = SessionWalk.State.allCases.flatMap { state in
            SessionWalk.Name.all.map { SessionWalk.Pair(state: state, event: $0) }
        }
        let missing = pairs.filter { !met.contains($0) }
        #expect(missing.isEmpty)
        print("\(met.count) of \(pairs.count) pairs of state and event")
    }

    #if KNOWN_BAD
        @Test("a broken rule is seen", arguments: KnownBad.ofOneSession) func isSeen(rule: KnownBad) {
            KnownBad.broken = rule
            defer { KnownBad.broken = nil }
            let seed = Self.seeds.first { seed in
                var walk = SessionWalk(seed: seed)
                walk.walk(steps: 60)
                return !walk.faults.isEmpty
            }
            print("| \(rule.rawValue) | \(rule.rule) | session | \(seed.map { "\($0)" } ?? "-") | 0 |")
            #expect(seed != nil)
        }
    #endif

    @Test("the walk has every body that a packet can have") func complete() {
        #expect(Set(SessionWalk.bodies.map(\.name)).count == 26, "25 bodies, and none")
    }
}
