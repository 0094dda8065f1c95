/// Latencies of one kind, kept whole: a load run is bounded, and percentiles are then exact.
struct LatencyHistogram {
    private var nanoseconds: [Int64] = []

    mutating func record(_ latency: Duration) {
        let (seconds, attoseconds) = latency.components
        nanoseconds.append(seconds * 1_000_000_000 + attoseconds / 1_000_000_000)
    }

    var count: Int { nanoseconds.count }

    /// Milliseconds at quantiles from 0 to 1, in the order given; zero when nothing was recorded.
    func milliseconds(at quantiles: [Double]) -> [Double] {
        let sorted = nanoseconds.sorted()
        return quantiles.map { quantile in
            guard !sorted.isEmpty else { return 0 }
            let rank = Int((quantile * Double(sorted.count)).rounded(.up)) - 1
            return Double(sorted[min(max(rank, 0), sorted.count - 1)]) / 1e6
        }
    }
}
