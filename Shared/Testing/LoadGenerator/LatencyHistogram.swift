/// Latencies in bounded memory. Each power of two of nanoseconds has 128 equal buckets, so a value is at most 0.4 %
/// away from the recorded one. The maximum is exact.
struct LatencyHistogram: Sendable {
    private static let bitsInOctave = 7
    private static let bucketsInOctave = 1 << bitsInOctave
    /// Longer latencies (above an hour) count as this value, in nanoseconds.
    private static let longest = Int64(1) << 42

    private var counts: [UInt32] = []
    private(set) var count = 0
    /// Nanoseconds.
    private(set) var maximum: Int64 = 0

    /// Records one latency. A negative value counts as zero.
    mutating func record(nanoseconds: Int64) {
        if counts.isEmpty { counts = Array(repeating: 0, count: Self.bucket(of: Self.longest) + 1) }
        counts[Self.bucket(of: min(max(nanoseconds, 0), Self.longest))] += 1
        count += 1
        maximum = max(maximum, nanoseconds)
    }

    /// Nanoseconds at a quantile from 0 to 1. Zero if nothing was recorded.
    func nanoseconds(at quantile: Double) -> Int64 {
        guard count > 0 else { return 0 }
        var left = max(1, Int((quantile * Double(count)).rounded(.up)))
        guard left < count else { return maximum }
        for (bucket, found) in counts.enumerated() {
            left -= Int(found)
            if left <= 0 { return min(Self.middle(of: bucket), maximum) }
        }
        return maximum
    }

    /// In the first octave a bucket is one nanosecond wide.
    private static func bucket(of value: Int64) -> Int {
        guard value >= Int64(bucketsInOctave) else { return Int(value) }
        let octave = 63 - value.leadingZeroBitCount - bitsInOctave
        return octave * bucketsInOctave + Int(value >> Int64(octave))
    }

    private static func middle(of bucket: Int) -> Int64 {
        guard bucket >= bucketsInOctave else { return Int64(bucket) }
        let octave = bucket / bucketsInOctave - 1
        let lowest = Int64(bucket - octave * bucketsInOctave) << Int64(octave)
        return lowest + (Int64(1) << Int64(octave)) / 2
    }
}
