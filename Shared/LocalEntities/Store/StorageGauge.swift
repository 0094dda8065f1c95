/// Says when a store's space is low and when it has recovered: pure, each once, with room between the two.
struct StorageGauge: Sendable, Hashable {
    /// Bytes that the store may take.
    let limit: Int
    private(set) var isLow = false

    init(limit: Int) { self.limit = limit }

    /// What is to be told.
    enum Change: Hashable { case none, low, recovered }

    /// So many bytes are in use; all of them when the disk was full.
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
