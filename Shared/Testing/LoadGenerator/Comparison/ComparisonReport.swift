import ToolSupport

/// The report of a comparison: the ratio first / second of each measure, and the use of the processors by process.
struct ComparisonReport {
    /// A compared measure.
    private struct Measure {
        let name: String
        let decimals: Int
        let value: @Sendable (SliceSample) -> Double
    }

    private static let measures = [
        Measure(name: "rate, pushes/s", decimals: 0) { $0.rate },
        Measure(name: "p50, ms", decimals: 2) { $0.p50 },
        Measure(name: "p99, ms", decimals: 2) { $0.p99 },
        Measure(name: "CPU of a push, µs", decimals: 1) { $0.cpuPerPush },
    ]
    /// Seed of the intervals, so that the same samples give the same report.
    private static let seed: UInt64 = 12

    let samples: ComparisonSamples
    private let selection: PairSelection

    init(_ samples: ComparisonSamples) {
        self.samples = samples
        selection = PairSelection(samples.pairs)
    }

    /// Whether enough pairs count for a result.
    var isUsable: Bool { selection.kept.count >= RatioEstimate.pairsMin }

    /// The report as text.
    var text: String {
        let head = [
            samples.load, "first: \(samples.first)", "second: \(samples.second)",
            "\(samples.pairs.count) pairs, \(selection.dropped) dropped (steal \(selection.stolen), "
                + "fdatasync \(selection.syncs), ping \(selection.pings)), \(selection.kept.count) count",
        ]
        guard isUsable else {
            return (head + ["NO RESULT: fewer than \(RatioEstimate.pairsMin) pairs count. Measure in a quieter hour."])
                .joined(separator: "\n")
        }
        return (head + LoadText.table(ratios) + LoadText.table(processes)).joined(separator: "\n")
    }

    private var ratios: [[String]] {
        let head = ["measure (medians)", "first", "second", "ratio", "95 % interval", "first and second"]
        return [head]
            + Self.measures.map { measure in
                let (first, second) = (
                    selection.kept.map { measure.value($0.first) }, selection.kept.map { measure.value($0.second) }
                )
                let middle = [first, second].map {
                    LoadText.number(Statistics.median($0), decimals: measure.decimals)
                }
                guard let estimate = RatioEstimate(zip(first, second).map { $0 / $1 }, seed: Self.seed) else {
                    return [measure.name] + middle + ["-", "-", "-"]
                }
                func text(_ ratio: Double) -> String { LoadText.number(ratio, decimals: 3) }
                return [measure.name] + middle + [
                    text(estimate.median), "\(text(estimate.lower)) to \(text(estimate.upper))",
                    estimate.differs ? "differ" : "no difference found",
                ]
            }
    }

    /// Medians of the slices that count, for each process.
    private var processes: [[String]] {
        let head = ["process, per push (medians)", "CPU µs", "sleeps", "migrations"]
        return [head] + rows("first", selection.kept.map(\.first)) + rows("second", selection.kept.map(\.second))
    }

    private func rows(_ side: String, _ slices: [SliceSample]) -> [[String]] {
        let names = Set(slices.flatMap(\.processes.keys)).sorted()
        return names.map { name in
            func median(_ decimals: Int, _ value: (SchedulerSample.Counts) -> Double) -> String {
                let values = slices.map { slice in
                    slice.processes[name].map(value).map { $0 / Double(slice.deliveries) } ?? 0
                }
                return LoadText.number(Statistics.median(values), decimals: decimals)
            }
            return [
                "\(side): \(name)", median(1) { Double($0.cpuNanoseconds) / 1e3 }, median(2) { Double($0.sleeps) },
                median(3) { Double($0.migrations) },
            ]
        }
    }
}
