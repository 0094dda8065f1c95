import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

/// The history of channels: the newest oplogs first, from the local store and then from the server.
extension LocalOplogs {
    /// Returns the newest oplogs below an id, confirmed or not, without recalled oplogs and tombstones.
    ///
    /// - Parameter before: nil for the newest.
    func history(of channel: LocalChannel, before: Int64?, limit: Int) throws(SyncError) -> [SyncOplog] {
        try file.access("reading history") { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT \(Self.shownColumns) FROM oplog
                        WHERE channel_id = ? AND oplog_id < ? AND recalls = 0 AND NOT is_recalled
                        ORDER BY oplog_id DESC LIMIT ?
                        """), arguments: [channel.row, before ?? Int64.max, limit]
            ).map { try oplog(from: $0, of: channel) }
        }
    }

    /// Returns the newest oplogs of a channel with their states, as `history` does.
    func newest(of channel: LocalChannel, limit: Int) throws(SyncError) -> [SyncOplogList.Item] {
        try file.access("reading the newest oplogs") { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT \(Self.shownColumns), state FROM oplog
                        WHERE channel_id = ? AND recalls = 0 AND NOT is_recalled ORDER BY oplog_id DESC LIMIT ?
                        """), arguments: [channel.row, limit]
            ).map { row in
                let state: Int64 = row["state"]
                return SyncOplogList.Item(
                    oplog: try oplog(from: row, of: channel),
                    isConfirmed: state == OplogState.confirmed.rawValue || state == OplogState.history.rawValue)
            }
        }
    }

    /// Returns the number of oplogs that the app has not confirmed, without dead letters.
    func unconfirmed(in channel: LocalChannel) throws(SyncError) -> Int {
        try file.access("counting oplogs") { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT count(*) FROM oplog WHERE channel_id = ? AND state IN (
                            \(OplogState.waiting.rawValue), \(OplogState.handedOut.rawValue))
                        """), arguments: [channel.row]) ?? 0
        }
    }

    /// Stores a page that was read newest first. When the store is full, the page is returned but not stored.
    ///
    /// - Parameter before: the id of the request; 0 for the newest.
    /// - Returns: the oplogs of the page for the app.
    func storeHistory(
        _ page: Mss_Device_V1_HistoryPage, of key: LocalChannel.Key, before: Int64
    ) throws(SyncError) -> [SyncOplog] {
        let hasSpace = try space.free(for: StoreSpace.bytes(of: page.entries))
        var stored: LocalChannel?
        try file.change("storing history") { db in
            var channel = try channels.channel(key, in: db)
            if hasSpace {
                for entry in page.entries { try insert(entry, into: channel, as: .history, in: db) }
                channel.range.read(
                    downTo: page.more ? OplogID(page.next - 1) : .zero, before: OplogID(before),
                    head: OplogID(page.head))
                try channels.update(channel, in: db)
            }
            stored = channel
        }
        guard let stored else { return [] }
        channels.remember(stored)
        return page.entries.map { oplog(from: $0, of: stored) }
    }

    /// Creates the app's oplog from an entry of a history page.
    func oplog(from entry: Mss_Device_V1_Entry, of channel: LocalChannel) -> SyncOplog {
        SyncOplog(
            bizType: channel.key.bizType, oplogID: entry.oplogID, payload: [UInt8](entry.payload),
            isBinary: entry.binary, thirdMessageID: entry.thirdMessageID.isEmpty ? nil : entry.thirdMessageID,
            createdAt: entry.createdAtMs, userID: channel.userID, recalls: nil,
            isReplay: false, channelRow: channel.row, state: ResendLadder.State(repeats: 0, handOuts: 0))
    }
}
