import DeliveryHistory
import Foundation
import SyncModel
import TestSupport
import Testing

@Suite("Civil time")
struct WallTimeTests {
    @Test("the text is the calendar's, before 1970 and beyond leap days too")
    func text() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        let fixed: [Int64] = [0, -1, 951_782_400_000, 951_868_799_999, 1_700_000_000_123, 4_107_542_400_000]
        let random = (0..<2_000).map { _ in Int64.random(in: -2_000_000_000_000...9_000_000_000_000, using: &generator)
        }
        for milliseconds in fixed + random {
            let second = (Double(milliseconds) / 1_000).rounded(.down)
            let expected = Date(timeIntervalSince1970: second).formatted(.iso8601).dropLast()
            let rest = "\(1_000 + milliseconds - Int64(second) * 1_000)".dropFirst()
            #expect(WallTime(milliseconds: milliseconds).text == "\(expected).\(rest)Z", "seed \(seed)")
        }
    }
}
