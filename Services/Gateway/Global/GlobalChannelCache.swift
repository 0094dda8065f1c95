import BusMessages
import SwiftProtobuf
import SyncModel

/// The newest entries of one global channel, read once for all sessions of this gateway; pure (D15).
///
/// Invariant: the cache has every stored and valid entry above `from` and up to `upto`.
struct GlobalChannelCache {
    /// Maximum of cached entries. A session that needs older entries reads them from the store.
    static let entriesMax = 256

    private(set) var from: OplogID
    private(set) var upto: OplogID
    private(set) var entries: [Oplog] = []

    /// An empty cache that begins above a position.
    init(from: OplogID) {
        self.from = from
        upto = from
    }

    /// Adds the page that follows. Entries up to `upto` are known and ignored. Removes the entries that the page
    /// recalls.
    mutating func add(_ page: [Oplog], upto end: OplogID) {
        let recalled = Set(page.compactMap(\.recalls))
        if !recalled.isEmpty { remove(recalled) }
        entries += page.filter { $0.id > upto && !recalled.contains($0.id) }
        upto = max(upto, end)
        let excess = entries.count - Self.entriesMax
        guard excess > 0 else { return }
        from = entries[excess - 1].id
        entries.removeFirst(excess)
    }

    /// Removes recalled oplogs.
    mutating func remove(_ ids: Set<OplogID>) { entries.removeAll { ids.contains($0.id) } }

    /// Whether a threshold counts an oplog: only oplogs that existed when the backlog opened (D10).
    private func counts(_ id: OplogID, _ request: PageRequest) -> Bool {
        id <= request.newestUpto
    }

    /// The page that the store would answer with; nil: only the store can answer.
    func page(for request: PageRequest, now: WallTime) -> Mss_Bus_V1_FetchReply? {
        guard upto >= request.head else { return nil }
        let valid = entries.filter { $0.id > request.after && $0.validUntil > now }
        var start = request.after
        if request.newest > 0 {
            let matching = valid.filter {
                $0.recalls == nil && counts($0.id, request) && $0.targeting.exclusion(of: request.traits) == nil
            }
            if matching.count > request.newest {
                start = matching[matching.count - request.newest - 1].id
            }
        }
        // A device with data needs the tombstones above its position, also those below the threshold.
        guard start >= from, request.after >= from || request.after == .zero else { return nil }
        let tombstones = valid.filter { $0.id <= start && $0.recalls != nil }.prefix(Limits.fetchPageOplogs)
        let page = Array(valid.drop { $0.id <= start }.prefix(Limits.fetchPageOplogs))
        let isFull = page.count == Limits.fetchPageOplogs
        return .with {
            $0.after = request.after.value
            $0.upto = (isFull ? page.last?.id ?? upto : upto).value
            $0.entries = (tombstones + page).map(\.bus)
            $0.more = isFull
            $0.discardedUpto = start.value
        }
    }
}
