/// A histogram of the times from the acceptance of pushes to their first confirmation. The buckets are fixed, so
/// figures of different minutes can be added and still give percentiles.
package struct ArrivalTimes: Hashable, Sendable {
    /// The upper limits of the buckets in milliseconds; the last bucket has none. The store uses the same limits
    /// (SQL function `fold_statistics_oplogs`).
    package static let ends: [Int64] = (0...7).flatMap { power in
        let unit = (0..<power).reduce(Int64(1)) { value, _ in value * 10 }
        return [unit, 2 * unit, 5 * unit]
    }

    /// Pushes in each bucket; there is one bucket more than limits.
    package private(set) var counts = [Int64](repeating: 0, count: ends.count + 1)

    package init() {}

    /// Pushes in all buckets.
    package var total: Int64 { counts.reduce(0, +) }

    /// Adds pushes to a bucket; ignores a bucket that does not exist.
    package mutating func add(_ pushes: Int64, bucket: Int) {
        guard counts.indices.contains(bucket) else { return }
        counts[bucket] += pushes
    }

    package static func += (left: inout ArrivalTimes, right: ArrivalTimes) {
        for bucket in left.counts.indices { left.counts[bucket] += right.counts[bucket] }
    }

    /// The percentile of the times in milliseconds, with linear interpolation inside a bucket; nil without pushes. For
    /// the last bucket it is the bucket's lower limit.
    ///
    /// - Parameter part: from 0 to 1; 0.5 for the median.
    package func milliseconds(at part: Double) -> Double? {
        let total = total
        guard total > 0 else { return nil }
        let rank = min(max(part, 0), 1) * Double(total)
        var below = 0.0
        for (bucket, count) in counts.enumerated() where count > 0 {
            let begin = bucket == 0 ? 0 : Double(Self.ends[bucket - 1])
            guard bucket < Self.ends.count else { return begin }
            if below + Double(count) >= rank {
                return begin + (Double(Self.ends[bucket]) - begin) * (rank - below) / Double(count)
            }
            below += Double(count)
        }
        return nil
    }
}
