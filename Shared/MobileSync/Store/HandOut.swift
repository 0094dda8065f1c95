import SyncModel

/// Which oplog the app gets next: repeats that are due, then what waits, ascending per channel.
///
/// What waits is known to the store; here is only where to look. An id that is read ahead is looked at again when it is
/// handed out, so one that was confirmed, recalled or given up meanwhile is passed over.
struct HandOut {
    /// Ids read from the store at once.
    private static let pageOplogs = 32

    private struct Page {
        let channel: LocalChannel
        var ids: ArraySlice<Int64>
    }

    /// Channels in which something may wait.
    private var unread: Set<Int64>
    /// Oplogs by channel whose wait on the resend ladder is over.
    private var repeats: [Int64: ArraySlice<Int64>] = [:]
    private var page: Page?
    /// The channel that the last page was of; the next is another's, so that none has to wait for a busy one.
    private var lastRow: Int64 = 0

    /// - Parameter channels: rows of the channels in which oplogs wait.
    init(channels: [Int64]) { unread = Set(channels) }

    /// Something was stored in these channels.
    mutating func filled(_ channels: Set<Int64>) { unread.formUnion(channels) }

    /// The wait of an oplog that the app has is over.
    mutating func repeatOplog(_ wait: ResendSchedule.Wait) {
        repeats[wait.channelRow, default: []].append(wait.oplogID)
    }

    /// The next oplog for the app, nil when there is none now; the store has counted it.
    ///
    /// - Parameters:
    ///   - bizType: only of this one; nil for all.
    ///   - userID: the bound user; data of others waits.
    ///   - row: only of the channel in this row; nil for all.
    /// - Throws: `SyncError.store`; nothing was taken then.
    mutating func next(
        of bizType: String?, userID: String?, row: Int64? = nil, from store: LocalStore
    ) throws(SyncError) -> SyncOplog? {
        func isWanted(_ channel: LocalChannel) -> Bool {
            row.map { $0 == channel.row } ?? true && bizType?.isSame(as: channel.key.bizType) ?? true
                && channel.isVisible(to: userID) && !store.isSuspended(channel.key.bizType)
        }
        for row in repeats.keys.sorted() {
            guard let channel = store.channel(row: row), isWanted(channel) else { continue }
            if let oplog = try takeRepeat(of: channel, from: store) { return oplog }
        }
        if let channel = page?.channel, isWanted(channel), let oplog = try takeFromPage(of: store) { return oplog }
        let rows = unread.sorted()
        for row in rows.filter({ $0 > lastRow }) + rows.filter({ $0 <= lastRow }) {
            guard let channel = store.channel(row: row), isWanted(channel) else { continue }
            let ids = try store.waiting(in: channel, limit: Self.pageOplogs)
            if ids.count < Self.pageOplogs { unread.remove(row) }
            // What is left of the page before waits in the store all the same.
            page.map { _ = unread.insert($0.channel.row) }
            page = Page(channel: channel, ids: ids[...])
            lastRow = row
            if let oplog = try takeFromPage(of: store) { return oplog }
        }
        return nil
    }

    private mutating func takeRepeat(of channel: LocalChannel, from store: LocalStore) throws(SyncError) -> SyncOplog? {
        while let id = repeats[channel.row]?.first {
            let oplog = try store.handOut(id, of: channel, isRepeat: true)
            repeats[channel.row]?.removeFirst()
            if let oplog { return oplog }
        }
        repeats[channel.row] = nil
        return nil
    }

    private mutating func takeFromPage(of store: LocalStore) throws(SyncError) -> SyncOplog? {
        while let channel = page?.channel, let id = page?.ids.first {
            let oplog = try store.handOut(id, of: channel, isRepeat: false)
            page?.ids.removeFirst()
            if let oplog { return oplog }
        }
        page = nil
        return nil
    }
}
