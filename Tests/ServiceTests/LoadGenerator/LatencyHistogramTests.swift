import DeliveryHistory
import TestSupport
import Testing

@testable import LoadGenerator

@Suite("LatencyHistogram: quantiles in bounded memory") struct LatencyHistogramTests {
    @Test("an empty histogram gives zero") func empty() {
        let histogram = LatencyHistogram()
        #expect(histogram.count == 0 && histogram.nanoseconds(at: 0.5) == 0 && histogram.maximum == 0)
    }

    @Test("small values and the largest are exact") func exact() {
        var histogram = LatencyHistogram()
        for value in 1...100 { histogram.record(nanoseconds: Int64(value)) }
        histogram.record(nanoseconds: 123_456_789)
        #expect(histogram.nanoseconds(at: 0) == 1)
        #expect(histogram.nanoseconds(at: 0.5) == 51)
        #expect(histogram.nanoseconds(at: 1) == 123_456_789)
    }

    @Test("values below zero or above an hour count as the limit") func edges() {
        var histogram = LatencyHistogram()
        histogram.record(nanoseconds: -5)
        histogram.record(nanoseconds: .max)
        histogram.record(nanoseconds: .max)
        #expect(histogram.nanoseconds(at: 0.1) == 0)
        #expect(histogram.nanoseconds(at: 0.6) >= 1 << 42)
        #expect(histogram.count == 3)
    }

    @Test("quantiles are within 1 % of the sorted values", arguments: 1...20) func error(seed: Int) {
        var random = SeededGenerator(seed: UInt64(seed))
        var histogram = LatencyHistogram()
        var values: [Int64] = []
        for _ in 0..<5_000 {
            // Each magnitude is equally frequent.
            let value = Int64.random(in: 0..<(1 << Int64.random(in: 1...40, using: &random)), using: &random)
            values.append(value)
            histogram.record(nanoseconds: value)
        }
        values.sort()
        for quantile in [0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = values[Int((quantile * 5_000).rounded(.up)) - 1]
            let found = histogram.nanoseconds(at: quantile)
            #expect(abs(found - exact) * 100 <= max(exact, 1), "seed \(seed), quantile \(quantile)")
        }
    }
}
