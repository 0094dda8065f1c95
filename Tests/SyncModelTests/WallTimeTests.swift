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

    @Test("a date of an HTTP header has the form of RFC 9110 §5.6.7, and is read again")
    func httpDates() {
        #expect(WallTime(milliseconds: 784_111_777_000).httpDate == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(WallTime(milliseconds: 951_782_400_000).httpDate == "Tue, 29 Feb 2000 00:00:00 GMT")
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        for _ in 0..<2_000 {
            let time = WallTime(milliseconds: .random(in: -2_000_000_000...9_000_000_000, using: &generator) * 1_000)
            let date = Date(timeIntervalSince1970: Double(time.milliseconds / 1_000))
            #expect(WallTime(httpDate: time.httpDate) == time, "seed \(seed)")
            #expect(time.httpDate.hasPrefix(days[calendar.component(.weekday, from: date) - 1]), "seed \(seed)")
        }
    }

    @Test(
        "dates of headers are read in their one form",
        arguments: [
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Thu, 29 Feb 2024 23:59:60 GMT", 1_709_251_199), ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
            ("Thu, 29 Feb 2023 00:00:00 GMT", nil), ("Sun, 06 Nov 1994 24:00:00 GMT", nil),
            ("Sun, 6 Nov 1994 08:49:37 GMT", nil), ("Sun Nov  6 08:49:37 1994", nil), ("", nil),
            ("Sun, 06 Nov 1994 08:49:37 CET", nil), ("Sun, 00 Nov 1994 08:49:37 GMT", nil),
            ("Sun, 06 Foo 1994 08:49:37 GMT", nil), ("Sun, +6 Nov 1994 08:49:37 GMT", nil),
        ] as [(String, Double?)])
    func parsedDates(_ text: String, _ seconds: Double?) {
        #expect(WallTime(httpDate: text)?.milliseconds == seconds.map { Int64($0) * 1_000 })
    }
}
