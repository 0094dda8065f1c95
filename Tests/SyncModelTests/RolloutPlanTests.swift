import SyncModel
import Testing

@Suite("The plan of a roll-out")
struct RolloutPlanTests {
    private static func plan(_ stages: [Int], id: String = "r", interval: Duration? = nil) -> RolloutPlan {
        RolloutPlan(id: ThirdMessageID(id), stages: stages, interval: interval)
    }

    @Test(
        "stages rise to all devices",
        arguments: [
            ([100, 1_000, 10_000], true), ([1, 10_000], true), ([10_000], false), ([], false), ([0, 10_000], false),
            ([100, 100, 10_000], false), ([200, 100, 10_000], false), ([100, 9_999], false), ([100, 10_001], false),
            ([-5, 10_000], false), (Array(1...9) + [10_000], true), (Array(1...10) + [10_000], false),
        ])
    func stages(stages: [Int], isRight: Bool) { #expect((Self.plan(stages).fault == nil) == isRight) }

    @Test("the ids of the stages are not too long, and an interval has bounds")
    func bounds() {
        let longest = String(repeating: "é", count: 97)
        #expect(Self.plan([1, 10_000], id: longest).fault == nil)
        #expect(Self.plan([1, 10_000], id: longest + "x").fault != nil)
        #expect(Self.plan([1, 10_000], id: "").fault != nil && Self.plan([1, 10_000], id: "a\0").fault != nil)
        let ids = (1...10).map { Self.plan([1, 10_000], id: longest).stageID($0).text }
        #expect(Set(ids).count == 10 && ids.allSatisfy { $0.utf16.count <= Limits.thirdMessageIDUnits })
        for (seconds, isRight) in [(59, false), (60, true), (2_592_000, true), (2_592_001, false), (-1, false)] {
            #expect((Self.plan([1, 10_000], interval: .seconds(seconds)).fault == nil) == isRight)
        }
    }

    @Test("each roll-out begins with other devices, and always with the same")
    func start() {
        #expect(Set((0..<50).map { Self.plan([100, 10_000], id: "r\($0)").start }).count > 40)
        #expect(Self.plan([100, 10_000], id: "d1").share(of: 1) == DeviceShare(start: 2_781, size: 100))
        #expect(Self.plan([100, 10_000], id: "d1").share(of: 2) == DeviceShare(start: 2_881, size: 9_900))
    }

    @Test(
        "percentages are read as people write them, and written so",
        arguments: [
            ("1, 10, 100", [100, 1_000, 10_000]), ("0.5,100", [50, 10_000]), ("0.01,2.25,100", [1, 225, 10_000]),
            ("100", [10_000]),
        ])
    func percent(text: String, slots: [Int]) {
        #expect(RolloutPlan.stages(text) == slots)
        #expect(slots.map(RolloutPlan.percent).joined(separator: ",") == text.replacing(" ", with: ""))
    }

    @Test(
        "a text that is not a list of percentages is refused",
        arguments: ["", ",", "1,", "x", "1.234", "1.", ".5", "-1", "101", "1;2", "+1", "1.+5"])
    func refused(text: String) { #expect(RolloutPlan.stages(text) == nil) }

    @Test("every refusal names the remedy")
    func words() {
        for outcome in RolloutOutcome.allCases { #expect(outcome.refusal.isEmpty == outcome.isSuccess) }
        #expect(Set(RolloutState.allCases.map(\.word)).count == RolloutState.allCases.count)
    }
}
