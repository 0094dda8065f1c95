import DeliveryHistory

/// Medians and quantiles of few values.
enum Statistics {
    /// The middle value, or the mean of the two middle values. 0 without values.
    static func median(_ values: [Double]) -> Double { quantile(0.5, of: values.sorted()) }

    /// The value at a quantile from 0 to 1, interpolated between neighbours. 0 without values.
    static func quantile(_ quantile: Double, of sorted: [Double]) -> Double {
        guard let last = sorted.indices.last else { return 0 }
        let place = quantile * Double(last)
        let below = Int(place.rounded(.down))
        let above = min(below + 1, last)
        return sorted[below] + (sorted[above] - sorted[below]) * (place - Double(below))
    }
}

/// The median of the ratios of pairs, with a bootstrap interval (Efron: percentile method).
struct RatioEstimate: Hashable, Sendable {
    /// Resamples with replacement. More change the interval by less than its last printed digit.
    static let resamples = 10_000
    /// Fewest pairs for an estimate. With fewer, the interval covers less than it says.
    static let pairsMin = 6
    /// Part of the resamples that the interval contains.
    static let coverage = 0.95

    let median: Double
    let lower: Double
    let upper: Double

    /// Estimates a ratio. Returns nil if there are too few ratios.
    ///
    /// - Parameters:
    ///   - ratios: one for each pair.
    ///   - seed: of the resampling. The same ratios and seed give the same interval.
    init?(_ ratios: [Double], seed: UInt64) {
        guard ratios.count >= Self.pairsMin else { return nil }
        var random = SeededGenerator(seed: seed)
        var medians: [Double] = []
        medians.reserveCapacity(Self.resamples)
        for _ in 0..<Self.resamples {
            medians.append(
                Statistics.median(ratios.map { _ in ratios[Int.random(in: ratios.indices, using: &random)] }))
        }
        medians.sort()
        median = Statistics.median(ratios)
        lower = Statistics.quantile((1 - Self.coverage) / 2, of: medians)
        upper = Statistics.quantile((1 + Self.coverage) / 2, of: medians)
    }

    /// Whether the interval excludes 1, so the sides differ.
    var differs: Bool { lower > 1 || upper < 1 }
}
