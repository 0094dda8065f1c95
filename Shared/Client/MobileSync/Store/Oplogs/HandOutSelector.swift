import SyncModel

/// Selects the next oplog for the app: first resends that are due, then waiting oplogs, in ascending order within each
/// channel.
///
/// Only the store knows which oplogs wait; this value remembers where to look. It reads ids ahead, and the store checks
/// each id again at its hand-out. So an oplog that was confirmed, recalled or marked dead meanwhile is left out.
struct HandOutSelector {
    /// The number of ids in one read of the store.
    private static let pageOplogs = 32

    private struct Page {
        let channel: LocalChannel
        var ids: ArraySlice<Int64>
    }

    /// The channels that can have waiting oplogs.
    private var unread: Set<Int64>
    /// The oplogs by channel whose wait on the resend ladder is over.
    private var resends: [Int64: ArraySlice<Int64>] = [:]
    private var page: Page?
    /// The channel of the last page. The next page is of another channel, so a busy channel does not block the others.
    private var lastRow: Int64 = 0

    /// - Parameter channels: the rows of the channels with waiting oplogs.
    init(channels: [Int64]) { unread = Set(channels) }

    /// Marks channels as having waiting oplogs.
    mutating func markUnread(_ channels: Set<Int64>) { unread.formUnion(channels) }

    /// Queues an oplog whose wait on the resend ladder is over.
    mutating func enqueueResend(_ wait: ResendSchedule.Wait) {
        resends[wait.channelRow, default: []].append(wait.oplogID)
    }

    /// Returns the next oplog for the app, after the store has counted the hand-out. Returns nil when there is none
    /// now.
    ///
    /// - Parameters:
    ///   - bizType: a Sync ID; nil for all.
    ///   - userID: the bound user. Data of other users waits.
    ///   - row: the row of a channel; nil for all.
    /// - Throws: `SyncError.store`; then no oplog was handed out.
    mutating func next(
        of bizType: String?, userID: String?, row: Int64? = nil, from store: LocalStore
    ) throws(SyncError) -> SyncOplog? {
        func isWanted(_ channel: LocalChannel) -> Bool {
            row.map { $0 == channel.row } ?? true && bizType?.isSame(as: channel.key.bizType) ?? true
                && channel.isVisible(to: userID) && !store.subscriptions.isSuspended(channel.key.bizType)
        }
        for row in resends.keys.sorted() {
            guard let channel = store.channels.channel(row: row), isWanted(channel) else { continue }
            if let oplog = try nextResend(of: channel, from: store) { return oplog }
        }
        if let channel = page?.channel, isWanted(channel), let oplog = try nextFromPage(of: store) { return oplog }
        let rows = unread.sorted()
        for row in rows.filter({ $0 > lastRow }) + rows.filter({ $0 <= lastRow }) {
            guard let channel = store.channels.channel(row: row), isWanted(channel) else { continue }
            let ids = try store.oplogs.waiting(in: channel, limit: Self.pageOplogs)
            if ids.count < Self.pageOplogs { unread.remove(row) }
            // The rest of the previous page still waits in the store.
            page.map { _ = unread.insert($0.channel.row) }
            page = Page(channel: channel, ids: ids[...])
            lastRow = row
            if let oplog = try nextFromPage(of: store) { return oplog }
        }
        return nil
    }

    private mutating func nextResend(of channel: LocalChannel, from store: LocalStore) throws(SyncError) -> SyncOplog? {
        while let id = resends[channel.row]?.first {
            let oplog = try store.oplogs.handOut(id, of: channel, isRepeat: true)
            resends[channel.row]?.removeFirst()
            if let oplog { return oplog }
        }
        resends[channel.row] = nil
        return nil
    }

    private mutating func nextFromPage(of store: LocalStore) throws(SyncError) -> SyncOplog? {
        while let channel = page?.channel, let id = page?.ids.first {
            let oplog = try store.oplogs.handOut(id, of: channel, isRepeat: false)
            page?.ids.removeFirst()
            if let oplog { return oplog }
        }
        page = nil
        return nil
    }
}
