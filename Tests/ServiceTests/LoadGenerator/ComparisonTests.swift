import DeliveryHistory
import Foundation
import Testing

@testable import LoadGenerator
@testable import ToolSupport

@Suite("A comparison: ratios of pairs, intervals, and pairs that do not count") struct ComparisonTests {
    private func slice(
        rate: Double = 1_000, p50: Double = 1, cpu: Int = 600_000, stolen: Double = 0, sync: Double = 1,
        ping: Double = 50
    ) -> SliceSample {
        let deliveries = Int(rate * 3)
        return SliceSample(
            seconds: 3, deliveries: deliveries, p50: p50, p99: p50 * 4,
            processes: [
                "writer-1": SchedulerSample.Counts(
                    cpuNanoseconds: cpu * deliveries, sleeps: 2 * deliveries, migrations: deliveries / 2)
            ], stolenPercent: stolen, longestSync: sync, ping: ping)
    }

    private func samples(_ pairs: [SlicePair]) -> ComparisonSamples {
        ComparisonSamples(load: "closed loop", first: "a", second: "b", pairs: pairs)
    }

    /// Ratios of a machine whose speed drifts, so that neighbouring slices have about the same speed.
    private func ratios(_ truth: Double, noise: Double, seed: UInt64, pairs: Int = 12) -> [Double] {
        var random = SeededGenerator(seed: seed)
        return (0..<pairs).map { _ in
            truth * (1 + noise * Double.random(in: -1...1, using: &random))
                / (1 + noise * Double.random(in: -1...1, using: &random))
        }
    }

    @Test("median and quantiles") func quantiles() {
        #expect(Statistics.median([]) == 0 && Statistics.median([4]) == 4)
        #expect(Statistics.median([3, 1, 2]) == 2 && Statistics.median([4, 1, 3, 2]) == 2.5)
        #expect(Statistics.quantile(0, of: [1, 2, 3]) == 1 && Statistics.quantile(1, of: [1, 2, 3]) == 3)
        #expect(Statistics.quantile(0.25, of: [0, 2]) == 0.5)
    }

    @Test("the same ratios and seed give the same interval") func repeatable() throws {
        let ratios = ratios(1.1, noise: 0.05, seed: 3)
        let estimate = try #require(RatioEstimate(ratios, seed: 1))
        #expect(RatioEstimate(ratios, seed: 1) == estimate)
        #expect(estimate.lower <= estimate.median && estimate.median <= estimate.upper)
        #expect(estimate.median == Statistics.median(ratios))
        #expect(ratios.min() ?? 0 <= estimate.lower && estimate.upper <= ratios.max() ?? 0)
    }

    @Test("too few pairs give no estimate") func few() {
        #expect(RatioEstimate(Array(repeating: 1, count: RatioEstimate.pairsMin - 1), seed: 1) == nil)
        #expect(RatioEstimate(Array(repeating: 1, count: RatioEstimate.pairsMin), seed: 1)?.upper == 1)
    }

    @Test("slices with 3 % of noise show a slowdown of 5 %, and usually none where there is none") func planted() {
        let seeds: [UInt64] = Array(1...10)
        func found(_ truth: Double) -> Int {
            seeds.count { RatioEstimate(ratios(truth, noise: 0.03, seed: $0), seed: $0)?.differs ?? false }
        }
        #expect(found(1.05) == seeds.count)
        // An interval of 95 % may exclude the truth.
        #expect(found(1) <= 1)
    }

    @Test("a disturbance in either slice drops the pair, and each is counted") func selection() {
        let quiet = SlicePair(first: slice(), second: slice())
        let pairs =
            Array(repeating: quiet, count: 7) + [
                SlicePair(first: slice(stolen: 2.1), second: slice()),
                SlicePair(first: slice(), second: slice(sync: 10.1)),
                SlicePair(first: slice(ping: 76), second: slice()),
                SlicePair(first: slice(stolen: 3, sync: 30), second: slice(ping: 100)),
                SlicePair(first: slice(stolen: 2, sync: 10, ping: 75), second: slice()),
            ]
        let selection = PairSelection(pairs)
        #expect(selection.kept == Array(repeating: quiet, count: 7) + [pairs[11]])
        #expect(selection.dropped == 4)
        #expect(selection.stolen == 2 && selection.syncs == 2 && selection.pings == 2)
    }

    @Test("a side whose pings are always slow is not dropped for that") func slowSide() {
        let pairs = Array(repeating: SlicePair(first: slice(ping: 200), second: slice(ping: 40)), count: 6)
        #expect(PairSelection(pairs).kept.count == 6)
    }

    @Test("the report has ratios, intervals and processes, and is made from the samples again") func report() throws {
        let pairs = (0..<8).map { number in
            let speed = 1 + Double(number) / 10
            return SlicePair(
                first: slice(rate: 500 * speed, p50: 2 / speed, cpu: 1_200_000),
                second: slice(rate: 1_000 * speed, p50: 2 / speed, cpu: 600_000))
        }
        let samples = samples(pairs + [SlicePair(first: slice(stolen: 50), second: slice())])
        let report = ComparisonReport(samples)
        #expect(report.isUsable)
        #expect(report.text.contains("9 pairs, 1 dropped (steal 1, fdatasync 0, ping 0), 8 count"))
        let lines = report.text.split(separator: "\n")
        let rate = try #require(lines.first { $0.hasPrefix("rate") })
        #expect(rate.contains("0.500") && rate.hasSuffix("differ"))
        let p50 = try #require(lines.first { $0.hasPrefix("p50") })
        #expect(p50.contains("1.000 to 1.000") && p50.hasSuffix("no difference found"))
        let cpu = try #require(lines.first { $0.hasPrefix("CPU") })
        #expect(cpu.contains("1,200.0") && cpu.contains("600.0") && cpu.contains("2.000"))
        let writer = try #require(lines.first { $0.hasPrefix("second: writer-1") })
        #expect(writer.contains("600.0") && writer.contains("2.00") && writer.contains("0.500"))
        let again = try JSONDecoder().decode(ComparisonSamples.self, from: samples.json())
        #expect(again == samples && ComparisonReport(again).text == report.text)
    }

    @Test("a disturbed run has no result") func unusable() {
        let pairs = Array(repeating: SlicePair(first: slice(sync: 40), second: slice()), count: 12)
        let report = ComparisonReport(samples(pairs))
        #expect(!report.isUsable)
        #expect(report.text.contains("12 pairs, 12 dropped") && report.text.contains("NO RESULT"))
    }

    @Test("processes of PostgreSQL are told apart by their database") func titles() {
        let databases = [
            ("postgres: mss bare 127.0.0.1(41234) idle\0", "bare"), ("postgres: writer mss [local] INSERT", "mss"),
            ("postgres: autovacuum worker bare", "bare"), ("postgres: autovacuum launcher ", nil),
            ("postgres: logical replication launcher ", nil), ("postgres: checkpointer ", nil),
            ("/usr/lib/postgresql/15/bin/postgres\0-D\0/data", nil), ("mssctl\0floor\0writer\0--x\0", nil), ("", nil),
        ]
        for (title, database) in databases { #expect(ComparedSide.database(inTitle: title) == database, "\(title)") }
    }

    @Test("stolen time is a percentage of all time") func steal() {
        let before = MachineTime("cpu  100 0 100 700 50 0 50 0 10 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
        let after = MachineTime("cpu  150 0 100 730 50 0 50 20 60 0\n")
        #expect(before.total == 1_000 && before.stolen == 0)
        #expect(after.stolenPercent(since: before) == 20)
        #expect(before.stolenPercent(since: before) == 0 && MachineTime("").total == 0)
    }
}
