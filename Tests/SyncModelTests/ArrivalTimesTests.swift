import DeliveryHistory
import SyncModel
import TestSupport
import Testing

@Suite("Times of arrivals")
struct ArrivalTimesTests {
    private func times(_ counts: [Int: Int64]) -> ArrivalTimes {
        var times = ArrivalTimes()
        for (bucket, count) in counts { times.add(count, bucket: bucket) }
        return times
    }

    @Test("buckets end at 1, 2, 5, 10 … ms, up to 50,000 s")
    func ends() {
        #expect(ArrivalTimes.ends.prefix(5) == [1, 2, 5, 10, 20])
        #expect(ArrivalTimes.ends.last == 50_000_000 && ArrivalTimes.ends.count == 24)
        #expect(ArrivalTimes.ends == ArrivalTimes.ends.sorted())
    }

    @Test("a percentile lies in its bucket, in proportion; without pushes there is none")
    func percentiles() {
        #expect(ArrivalTimes().milliseconds(at: 0.5) == nil)
        #expect(times([3: 10]).milliseconds(at: 0.5) == 7.5)
        #expect(times([3: 10]).milliseconds(at: 1) == 10)
        #expect(times([0: 1]).milliseconds(at: 0.5) == 0.5)
        let mixed = times([3: 50, 6: 45, 9: 5])
        #expect(mixed.milliseconds(at: 0.5) == 10)
        #expect(mixed.milliseconds(at: 0.95) == 100)
        #expect(mixed.milliseconds(at: 0.96) == 600)
        // The last bucket has only a lower bound.
        #expect(times([24: 3]).milliseconds(at: 0.5) == 50_000_000)
    }

    @Test("times of several minutes add up in any order; an unknown bucket is ignored")
    func sums() {
        var one = times([3: 1, 5: 2])
        one += times([3: 4, 24: 1])
        #expect(one == times([3: 5, 5: 2, 24: 1]))
        #expect(one.total == 8)
        #expect(times([-1: 1, 25: 1]).total == 0)
    }

    @Test("percentiles rise")
    func monotone() {
        for seed in 1...50 {
            var random = SeededGenerator(seed: UInt64(seed))
            var times = ArrivalTimes()
            for bucket in 0...24 where Bool.random(using: &random) {
                times.add(.random(in: 1...1_000, using: &random), bucket: bucket)
            }
            let found = (0...100).compactMap { times.milliseconds(at: Double($0) / 100) }
            #expect(found == found.sorted(), "\(seed)")
        }
    }
}
