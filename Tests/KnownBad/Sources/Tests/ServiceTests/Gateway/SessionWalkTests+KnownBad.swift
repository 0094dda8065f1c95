import SyncModel
import Testing

extension SessionWalkTests {
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
}
