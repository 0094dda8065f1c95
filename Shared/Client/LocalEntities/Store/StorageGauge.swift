/// Detects when a store's space becomes low and when it has recovered. A pure value; the two thresholds differ, so each
/// change is reported once.
struct StorageGauge: Sendable, Hashable {
    /// The largest size of the store, in bytes.
    let limit: Int
    private(set) var isLow = false

    init(limit: Int) { self.limit = limit }

    /// A change to report.
    enum Change: Hashable { case none, low, recovered }

    /// Records the used bytes; the limit when the disk is full.
    mutating func measured(_ bytes: Int) -> Change {
        if !isLow, bytes >= limit / 10 * 9 {
            isLow = true
            return .low
        }
        if isLow, bytes < limit / 10 * 8 {
            isLow = false
            return .recovered
        }
        return .none
    }
}
