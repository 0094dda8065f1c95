import SyncModel
import Testing

@Suite("A device session with random events", .serialized)
struct SessionWalkTests {
    static let seeds = UInt64(1)...8_000

    @Test("every event in every state, by seed: no session breaks a rule")
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

    @Test("the walk has every body of a frame") func complete() {
        #expect(Set(SessionWalk.bodies.map(\.name)).count == 26, "25 bodies, and none")
    }
}
