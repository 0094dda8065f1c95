import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

/// What lists show of the channels: the newest first, from here as far as it goes, and from the server behind that.
extension LocalStore {
    /// The newest oplogs below an id, confirmed or not; recalled ones and tombstones are left out.
    ///
    /// - Parameter before: nil: from the newest.
    func history(of channel: LocalChannel, before: Int64?, limit: Int) throws(SyncError) -> [SyncOplog] {
        try access("reading history") { db in
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

    /// Oplogs of a channel that the app has not confirmed, dead ones left out.
    func unconfirmed(in channel: LocalChannel) throws(SyncError) -> Int {
        try access("counting oplogs") { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT count(*) FROM oplog WHERE channel_id = ? AND state IN (
                            \(OplogState.waiting.rawValue), \(OplogState.handedOut.rawValue))
                        """), arguments: [channel.row]) ?? 0
        }
    }

    /// Keeps a page that was read newest first; without room it is shown and not kept.
    ///
    /// - Parameter before: as asked for; 0: from the newest.
    /// - Returns: the page's oplogs for the app.
    func keep(
        _ page: Mss_Device_V1_HistoryPage, of key: LocalChannel.Key, before: Int64
    ) throws(SyncError) -> [SyncOplog] {
        let hasRoom = try makeRoom(for: Self.bytes(of: page.entries))
        var kept: LocalChannel?
        try change("storing history") { db in
            var channel = try channel(key, in: db)
            if hasRoom {
                for entry in page.entries { try insert(entry, into: channel, as: .history, in: db) }
                channel.range.read(
                    downTo: page.more ? OplogID(page.next - 1) : .zero, before: OplogID(before),
                    head: OplogID(page.head))
                try update(channel, in: db)
            }
            kept = channel
        }
        guard let kept else { return [] }
        remember(kept)
        return page.entries.map { oplog(from: $0, of: kept) }
    }

    /// An oplog that came for a list.
    func oplog(from entry: Mss_Device_V1_Entry, of channel: LocalChannel) -> SyncOplog {
        SyncOplog(
            bizType: channel.key.bizType, oplogID: entry.oplogID, payload: [UInt8](entry.payload),
            isBinary: entry.binary, thirdMessageID: entry.thirdMessageID.isEmpty ? nil : entry.thirdMessageID,
            createdAt: entry.createdAtMs, userID: channel.userID, recalls: nil,
            isReplay: false, channelRow: channel.row, state: ResendLadder.State(repeats: 0, handOuts: 0))
    }
}
