import SyncModel
import SyncStore

/// Chooses the oplogs of one page of history from rows that the caller reads in turns; pure.
struct HistoryScan {
    /// Each turn after the first reads this many times more rows, because few of them are for the device.
    private static let growth = 4

    private let count: Int
    private let device: DeviceTraits
    private let filter: ResolvedFilter
    /// The oplogs of the page, in the order of the rows.
    private(set) var chosen: [OplogID] = []
    private var bytes = 0
    private var examined = 0
    /// The number of rows to read next; one more than needed shows whether the range continues. 0: the page is
    /// complete.
    private(set) var nextRows: Int
    /// The last examined row. The next page continues after it.
    private(set) var position: OplogID?
    /// Whether the range has more rows after `position`.
    private(set) var isCutShort = false

    /// - Parameter count: the largest number of oplogs in the page, at most `Limits.historyPageOplogs`.
    init(count: Int, device: DeviceTraits, filter: ResolvedFilter = .everything) {
        self.count = min(max(count, 1), Limits.historyPageOplogs)
        self.device = device
        self.filter = filter
        nextRows = self.count + 1
    }

    /// Examines the rows that follow `position`: `nextRows` rows, or fewer at the end of the range.
    mutating func examine(_ rows: [HistoryStore.Candidate]) {
        for row in rows {
            let isWanted =
                row.isOffered && row.targeting.exclusion(of: device) == nil
                && filter.matches(attributes: row.attributes)
            let isFull = chosen.count == count || examined == Limits.oplogsLookedAt
            let isTooLarge =
                isWanted && !chosen.isEmpty && bytes + row.payloadBytes > Limits.historyPageBytes
            if isFull || isTooLarge {
                isCutShort = true
                nextRows = 0
                return
            }
            if isWanted {
                chosen.append(row.id)
                bytes += row.payloadBytes
            }
            examined += 1
            position = row.id
        }
        // One row more than the limit shows whether the range continues.
        nextRows = rows.count < nextRows ? 0 : min(nextRows * Self.growth, Limits.oplogsLookedAt - examined + 1)
    }
}
