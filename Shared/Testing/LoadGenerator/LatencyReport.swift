/// The quantiles of a histogram in milliseconds.
struct LatencyReport: Hashable, Sendable, Codable {
    let count: Int
    let p50: Double
    let p90: Double
    let p99: Double
    let p999: Double
    let max: Double

    init(_ histogram: LatencyHistogram) {
        func milliseconds(_ nanoseconds: Int64) -> Double { (Double(nanoseconds) / 1e3).rounded() / 1e3 }
        count = histogram.count
        p50 = milliseconds(histogram.nanoseconds(at: 0.5))
        p90 = milliseconds(histogram.nanoseconds(at: 0.9))
        p99 = milliseconds(histogram.nanoseconds(at: 0.99))
        p999 = milliseconds(histogram.nanoseconds(at: 0.999))
        max = milliseconds(histogram.maximum)
    }

    /// The report as one line of text.
    var text: String {
        let parts = [("p50", p50), ("p99", p99), ("p99.9", p999), ("max", max)]
        return parts.map { "\($0) \(LoadText.number($1, decimals: 2)) ms" }.joined(separator: ", ")
    }
}
