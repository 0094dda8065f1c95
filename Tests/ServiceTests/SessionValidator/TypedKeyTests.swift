import DeliveryHistory
import SyncModel
import TestSupport
import Testing

@testable import ControlTool
@testable import SessionValidator

@Suite("Typed keys") struct TypedKeyTests {
    /// Ids that are ambiguous when they are joined without a separator.
    private static let ids = [
        "", "a", "b", "c", "ab", "bc", "a:b", "b:c", ":", "a:", ":c", "a/b", "b/c", "/", "a_b", "b_c", "_", "a|b",
        "b|c",
        "a.b", "b.c", "..", "*", "#", "a\u{0}b", "\u{e9}", "e\u{301}", "%2F", "A", "\"", "\\",
    ]

    private static let addresses = ids.flatMap { instance in
        ids.flatMap { target in
            [ChannelKind.user, .device].flatMap { kind in
                ids.map { bizType in
                    ChannelAddress(
                        target: TargetAddress(instanceID: InstanceID(instance), kind: kind, target: target),
                        bizType: BizType(bizType))
                }
            }
        }
    }

    @Test("SEC10: 10^7 random pairs of channel addresses are one key only when every part is the same, byte by byte")
    func addressesAreInjective() async throws {
        let (addresses, seed) = (Self.addresses, UInt64.random(in: .min ... .max))
        #expect(Set(addresses).count == addresses.count)
        let joined = Set(
            addresses.map { "\($0.target.instanceID):\($0.target.kind.rawValue):\($0.target.target):\($0.bizType)" })
        #expect(joined.count < addresses.count, "a joined key would not tell them apart, so these can show it")
        let wrong = try await OwnThread.run {
            var random = SeededGenerator(seed: seed)
            var wrong = 0
            for _ in 0..<10_000_000 {
                // Two numbers from one draw. Half of the pairs differ in one part only.
                let draw = random.next()
                let first = Int(draw >> 32) % addresses.count
                let second = draw & 1 == 0 ? (first + 1) % addresses.count : Int(draw & 0xffff_ffff) % addresses.count
                if (addresses[first] == addresses[second]) != (first == second) { wrong += 1 }
            }
            return wrong
        }
        #expect(wrong == 0, "seed \(seed)")
    }

    @Test("SEC10: verdict requests and devices' files differ by each of their parts")
    func otherKeys() {
        var (questions, files) = (Set<InFlightCalls<Int>.Request>(), Set<String>())
        for first in Self.ids {
            for second in Self.ids {
                for third in Self.ids {
                    questions.insert(
                        InFlightCalls<Int>.Request(
                            instanceID: InstanceID(first), userID: UserID(second), sessionID: SessionID(third)))
                }
                files.insert(ListenCommand.defaultStore(instance: first, device: second))
            }
        }
        let count = Self.ids.count
        #expect(questions.count == count * count * count)
        #expect(files.count == count * count)
    }
}
