import SyncModel
import SyncStore

/// Chooses the oplogs of one page of history from rows that are looked at one after the other; pure.
struct HistoryScan {
    /// Rows looked at in the turns after the first are this many times more, where few are for the device.
    private static let growth = 4

    private let count: Int
    private let device: DeviceTraits
    private let filter: ResolvedFilter
    /// What the page holds, in the order looked at.
    private(set) var chosen: [OplogID] = []
    private var bytes = 0
    private var lookedAt = 0
    /// Rows to ask for next; one more than is wanted tells whether the range goes on. 0: the page is complete.
    private(set) var turn: Int
    /// The last row that is behind the page: the range goes on beyond it.
    private(set) var position: OplogID?
    /// The range holds more beyond `position`.
    private(set) var isCutShort = false

    /// - Parameter count: at the most; beyond `Limits.historyPageOplogs` it counts as that.
    init(count: Int, device: DeviceTraits, filter: ResolvedFilter = .everything) {
        self.count = min(max(count, 1), Limits.historyPageOplogs)
        self.device = device
        self.filter = filter
        turn = self.count + 1
    }

    /// Takes the rows that follow `position`, `turn` of them or, at the end of the range, fewer.
    mutating func take(_ rows: [HistoryStore.Candidate]) {
        for row in rows {
            let isWanted =
                row.isOffered && row.targeting.exclusion(of: device) == nil
                && filter.matches(attributes: row.attributes)
            let isFull = chosen.count == count || lookedAt == Limits.oplogsLookedAt
            let isTooLarge =
                isWanted && !chosen.isEmpty && bytes + row.payloadBytes > Limits.historyPageBytes
            if isFull || isTooLarge {
                isCutShort = true
                turn = 0
                return
            }
            if isWanted {
                chosen.append(row.id)
                bytes += row.payloadBytes
            }
            lookedAt += 1
            position = row.id
        }
        // One row beyond the most that are looked at tells whether there is one.
        turn = rows.count < turn ? 0 : min(turn * Self.growth, Limits.oplogsLookedAt - lookedAt + 1)
    }
}
