import DeliveryHistory
import Foundation
import SyncModel
import TestSupport
import Testing

@Suite("Shares of devices")
struct DeviceShareTests {
    @Test(
        "a device's slot never changes: other builds and releases must agree",
        arguments: [
            ("", 9_367), ("d1", 2_781), ("d2", 4_920), ("device-1", 8_877), ("device-2", 94), ("设备", 2_596),
            ("00000000-0000-0000-0000-000000000000", 1_178),
        ])
    func golden(id: String, slot: Int) { #expect(DeviceSlot(of: DeviceID(id)).number == slot) }

    @Test("100,000 ids fill each percent evenly, however ids are made", arguments: 0..<4)
    func spread(kind: Int) {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        var percents = [Int](repeating: 0, count: 100)
        for number in 0..<100_000 {
            let id =
                switch kind {
                case 0: "device-\(number)"
                case 1: String(100_000_000_000_000 + number)
                case 2: String(UInt64.random(in: 0...UInt64.max, using: &generator), radix: 16)
                default: "\(number)-\(String(repeating: "x", count: 60))"
                }
            percents[DeviceSlot(of: DeviceID(id)).number / 100] += 1
        }
        // Each percent should have 1,000 ids; 157 is five sigma.
        #expect(percents.allSatisfy { (843...1_157).contains($0) }, "seed \(seed): \(percents)")
    }

    @Test("shares that adjoin have no slot in common and leave none out, wherever they begin")
    func partition() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<50 {
            let inner = (0..<Int.random(in: 1...9, using: &generator)).map { _ in
                Int.random(in: 1..<DeviceSlot.count, using: &generator)
            }
            let plan = RolloutPlan(
                id: ThirdMessageID("\(UInt64.random(in: 0...UInt64.max, using: &generator))"),
                stages: Set(inner).sorted() + [DeviceSlot.count])
            #expect(plan.fault == nil)
            let shares = (1...plan.stages.count).map { plan.share(of: $0) }
            for number in 0..<DeviceSlot.count {
                let holders = shares.count { $0.contains(DeviceSlot(number: number)) }
                if holders != 1 { Issue.record("seed \(seed): slot \(number) is in \(holders) of \(shares)") }
            }
        }
    }

    @Test("a share continues at 0 after the last slot; without a size it has all devices")
    func circle() {
        let share = DeviceShare(start: 9_999, size: 2)
        let inside = (0..<DeviceSlot.count).filter { share.contains(DeviceSlot(number: $0)) }
        #expect(inside == [0, 9_999])
        #expect(DeviceSlot(number: 10_003).number == 3 && DeviceSlot(number: -1).number == 9_999)
        for size in [0, -1, 10_000, 10_001] { #expect(DeviceShare(start: 7, size: size) == .everyone) }
    }

    @Test("only a device of the share matches, and gateways do not record the others")
    func targeting() {
        let targeting = Targeting(operatingSystem: .iOS, share: DeviceShare(start: 10, size: 5))
        func reason(_ slot: Int, _ system: SyncModel.OperatingSystem) -> SkipReason? {
            targeting.exclusion(
                of: DeviceTraits(operatingSystem: system, appVersion: "", slot: DeviceSlot(number: slot)))
        }
        #expect(reason(9, .iOS) == .share && reason(10, .iOS) == nil && reason(14, .iOS) == nil)
        #expect(reason(15, .iOS) == .share && reason(12, .android) == .operatingSystem)
        #expect(SkipReason.allCases.filter { !$0.isRecorded } == [.share])
    }
}
