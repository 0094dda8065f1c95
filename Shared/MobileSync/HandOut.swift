/// What has been handed to the app since the store was opened: ascending per channel, one page in memory at a time.
///
/// What was handed out and not confirmed comes again when the store is opened again.
struct HandOut {
    /// Oplogs read from the store at once: at most about half a megabyte.
    private static let pageOplogs = 32

    private struct Page {
        let channel: LocalChannel
        var oplogs: ArraySlice<SyncOplog>
    }

    /// Channels that may hold something above their position.
    private var unread: Set<Int64>
    /// The last oplog handed out of each channel.
    private var positions: [Int64: Int64] = [:]
    private var page: Page?
    /// The channel that the last page was of; the next is another's, so that none has to wait for a busy one.
    private var lastRow: Int64 = 0

    /// - Parameter channels: rows of the channels that hold unconfirmed oplogs.
    init(channels: [Int64]) { unread = Set(channels) }

    /// Something was stored in these channels.
    mutating func filled(_ channels: Set<Int64>) { unread.formUnion(channels) }

    /// The next oplog for the app, nil when there is none now.
    ///
    /// - Parameters:
    ///   - bizType: only of this one; nil for all.
    ///   - userID: the bound user; data of others waits.
    mutating func next(
        of bizType: String?, userID: String?, from store: LocalStore
    ) throws(SyncError) -> SyncOplog? {
        if let oplog = takeFromPage(of: bizType, userID: userID) { return oplog }
        let rows = unread.sorted()
        for row in rows.filter({ $0 > lastRow }) + rows.filter({ $0 <= lastRow }) {
            guard
                let channel = store.channel(row: row), bizType == nil || channel.key.bizType == bizType,
                channel.isVisible(to: userID)
            else { continue }
            let oplogs = try store.page(of: channel, after: positions[row] ?? 0, limit: Self.pageOplogs)
            if oplogs.count < Self.pageOplogs { unread.remove(row) }
            page.map { _ = unread.insert($0.channel.row) }
            page = Page(channel: channel, oplogs: oplogs[...])
            lastRow = row
            if let oplog = takeFromPage(of: bizType, userID: userID) { return oplog }
        }
        return nil
    }

    private mutating func takeFromPage(of bizType: String?, userID: String?) -> SyncOplog? {
        guard let channel = page?.channel, bizType == nil || channel.key.bizType == bizType,
            channel.isVisible(to: userID)
        else { return nil }
        guard let oplog = page?.oplogs.popFirst() else {
            page = nil
            return nil
        }
        positions[channel.row] = oplog.oplogID
        return oplog
    }
}
