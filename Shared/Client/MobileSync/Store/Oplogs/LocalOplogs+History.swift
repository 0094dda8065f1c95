import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

/// The history of channels: the newest oplogs first, from the local store and then from the server.
extension LocalOplogs {
    /// Returns the newest oplogs below an id, confirmed or not, without recalled oplogs and tombstones.
    ///
    /// - Parameters:
    ///   - conversation: only oplogs of this one; nil for all.
    ///   - before: nil for the newest.
    func history(
        of channel: LocalChannel, _ conversation: String?, before: Int64?, limit: Int
    ) throws(SyncError) -> [SyncOplog] {
        try newest(of: channel, conversation, before: before, limit: limit).map(\.oplog)
    }

    /// Returns oplogs as `history` does, with their states.
    func newest(
        of channel: LocalChannel, _ conversation: String?, before: Int64? = nil, limit: Int
    ) throws(SyncError) -> [SyncOplogList.Item] {
        try file.access("reading the newest oplogs") { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT \(Self.shownColumns), state
                        FROM oplog \(conversation == nil ? "" : "INDEXED BY oplog_conversation")
                        WHERE channel_id = :channel \(Self.isOf(conversation))
                            AND oplog_id < :before AND recalls = 0 AND NOT is_recalled
                        ORDER BY oplog_id DESC LIMIT :limit
                        """),
                arguments: Self.arguments(channel, conversation) + ["before": before ?? Int64.max, "limit": limit]
            ).map { row in
                let state: Int64 = row["state"]
                return SyncOplogList.Item(
                    oplog: try oplog(from: row, of: channel),
                    isConfirmed: state == OplogState.confirmed.rawValue || state == OplogState.history.rawValue)
            }
        }
    }

    /// The condition on the conversation; empty for all.
    private static func isOf(_ conversation: String?) -> String {
        conversation == nil ? "" : "AND conversation = :conversation"
    }

    private static func arguments(_ channel: LocalChannel, _ conversation: String?) -> StatementArguments {
        var arguments: StatementArguments = ["channel": channel.row]
        if let conversation { arguments += ["conversation": conversation] }
        return arguments
    }

    /// Returns the number of oplogs that the app has not confirmed, without dead letters.
    ///
    /// - Parameter conversation: only oplogs of this one; nil for all.
    func unconfirmed(in channel: LocalChannel, _ conversation: String? = nil) throws(SyncError) -> Int {
        try file.access("counting oplogs") { db in
            try Int.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT count(*) FROM oplog WHERE channel_id = :channel AND state IN (
                            \(OplogState.waiting.rawValue), \(OplogState.handedOut.rawValue))
                            \(Self.isOf(conversation))
                        """), arguments: Self.arguments(channel, conversation)) ?? 0
        }
    }

    /// Stores a page that was read newest first. When the store is full, the page is returned but not stored.
    ///
    /// - Parameters:
    ///   - conversation: the conversation of the request. Such a page has only some of the channel's oplogs, so it does
    ///     not extend the range in which the store has all of them. Nil for all oplogs.
    ///   - before: the id of the request; 0 for the newest.
    /// - Returns: the oplogs of the page for the app.
    func storeHistory(
        _ page: Mss_Device_V1_HistoryPage, of key: LocalChannel.Key, _ conversation: String?, before: Int64
    ) throws(SyncError) -> [SyncOplog] {
        let hasSpace = try space.free(for: StoreSpace.bytes(of: page.entries))
        var stored: LocalChannel?
        try file.change("storing history") { db in
            var channel = try channels.channel(key, in: db)
            if hasSpace {
                for entry in page.entries { try insert(entry, into: channel, as: .history, in: db) }
            }
            if hasSpace, conversation == nil {
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
            conversation: entry.conversation.isEmpty ? nil : entry.conversation, createdAt: entry.createdAtMs,
            userID: channel.userID, recalls: nil,
            isReplay: false, channelRow: channel.row, state: ResendLadder.State(repeats: 0, handOuts: 0))
    }
}
