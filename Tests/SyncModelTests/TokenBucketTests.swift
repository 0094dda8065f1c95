import DeliveryHistory
import SyncModel
import TestSupport
import Testing

@Suite("Token buckets and their table")
struct TokenBucketTests {
    private let start = ContinuousClock.now

    @Test("SEC2: four seconds' tokens are available at once, then the rate holds, in any order of calls")
    func rate() {
        for rate in [1, 20, 500] {
            var bucket = TokenBucket(perSecond: rate, at: start)
            #expect((0..<10 * rate).count { _ in bucket.consume(at: start) } == 4 * rate)
            // 100 s in steps of a tenth of a token: rounding neither loses a token nor gives one twice.
            var taken = 0
            for step in 1...(1_000 * rate) {
                let now = start + .seconds(Double(step) / Double(10 * rate))
                if bucket.consume(at: now) { taken += 1 }
            }
            #expect((100 * rate - 1...100 * rate).contains(taken), "\(rate)")
            #expect(bucket.consume(at: start) == false, "a clock that is behind gives nothing")
        }
    }

    @Test("SEC11: past events are charged: the wait grows to four seconds and no further")
    func owing() {
        var bucket = TokenBucket(perSecond: 10, at: start)
        for _ in 0..<40 { #expect(bucket.owe(at: start) == .zero) }
        #expect(bucket.owe(at: start) == .milliseconds(100))
        for _ in 0..<38 { _ = bucket.owe(at: start) }
        #expect(!bucket.isExhausted)
        #expect(bucket.owe(at: start) == .seconds(4))
        #expect(bucket.isExhausted)
        for _ in 0..<1_000 { #expect(bucket.owe(at: start) == .seconds(4)) }
        #expect(bucket.owe(at: start + .seconds(4)) == .milliseconds(100))
        #expect(!bucket.isExhausted)
    }

    @Test("SEC2: a table drops entries after two unused periods, keeps recent ones, and is limited")
    func table() {
        var table = ExpiringTable<Int, Int>(keepingFor: .seconds(10), maximum: 100)
        func touch(_ key: Int, _ seconds: Double) -> Int {
            table.update(key, at: start + .seconds(seconds), new: 0) {
                $0 += 1
                return $0
            }
        }
        #expect(touch(1, 0) == 1)
        #expect(touch(1, 9.9) == 2)
        #expect(touch(1, 19.8) == 3)
        #expect(touch(1, 40) == 1, "forgotten")
        var generator = SeededGenerator(seed: 7)
        for step in 0..<10_000 {
            _ = touch(.random(in: 0..<1_000_000, using: &generator), 41 + Double(step) / 1_000)
            #expect(table.count <= 100)
        }
        #expect(touch(-1, 52) == 1)
        for key in 0..<49 { _ = touch(2_000_000 + key, 52) }
        #expect(touch(-1, 52) == 2, "of a full table the later half stays")
    }
}
