/// How long pushes took from being accepted to their first confirmation, counted in fixed buckets, so that figures of
/// any minutes add up and still tell percentiles.
package struct ArrivalTimes: Hashable, Sendable {
    /// Where the buckets end, in milliseconds; the last bucket has no end. The store counts by the same
    /// (m0003_statistics_fold).
    package static let ends: [Int64] = (0...7).flatMap { power in
        let unit = (0..<power).reduce(Int64(1)) { value, _ in value * 10 }
        return [unit, 2 * unit, 5 * unit]
    }

    /// Pushes by bucket: one more than there are ends.
    package private(set) var counts = [Int64](repeating: 0, count: ends.count + 1)

    package init() {}

    /// Pushes in all buckets.
    package var total: Int64 { counts.reduce(0, +) }

    /// Adds pushes to a bucket; one that does not exist takes nothing.
    package mutating func add(_ pushes: Int64, bucket: Int) {
        guard counts.indices.contains(bucket) else { return }
        counts[bucket] += pushes
    }

    package static func += (left: inout ArrivalTimes, right: ArrivalTimes) {
        for bucket in left.counts.indices { left.counts[bucket] += right.counts[bucket] }
    }

    /// The time that this part of the pushes took at the most, in milliseconds, as if those of a bucket were spread
    /// evenly over it; nil: there are none. Of what is in the last bucket only its begin is known.
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
