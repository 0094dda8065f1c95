/// Selects the pairs of a comparison during which the machine was quiet.
///
/// A pair is dropped if one of its slices shows a disturbance: the result would describe the machine, not the sides.
/// Pings are compared with the median of the same side, because a busier side has slower pings of its own.
struct PairSelection: Hashable, Sendable {
    /// Most stolen time, in percent of the machine's time.
    static let stolenPercentMax = 2.0
    /// Longest `fdatasync`, in milliseconds.
    static let syncMax = 10.0
    /// Slowest median ping, as a multiple of the side's median.
    static let pingMax = 1.5

    /// The pairs that count, in order.
    private(set) var kept: [SlicePair] = []
    /// Number of dropped pairs.
    private(set) var dropped = 0
    /// Number of pairs with each disturbance. A pair can have several.
    private(set) var stolen = 0
    private(set) var syncs = 0
    private(set) var pings = 0

    init(_ pairs: [SlicePair]) {
        let firstPing = Statistics.median(pairs.map(\.first.ping)) * Self.pingMax
        let secondPing = Statistics.median(pairs.map(\.second.ping)) * Self.pingMax
        for pair in pairs {
            let slices = [pair.first, pair.second]
            let isStolen = slices.contains { $0.stolenPercent > Self.stolenPercentMax }
            let isSlowDisk = slices.contains { $0.longestSync > Self.syncMax }
            let isSlowPing = pair.first.ping > firstPing || pair.second.ping > secondPing
            if isStolen { stolen += 1 }
            if isSlowDisk { syncs += 1 }
            if isSlowPing { pings += 1 }
            if isStolen || isSlowDisk || isSlowPing { dropped += 1 } else { kept.append(pair) }
        }
    }
}
