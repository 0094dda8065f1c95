import GRDB
import SyncModel

/// The conversations of channels, and how far the user has read them.
extension LocalOplogs {
    /// A conversation of a channel on the device.
    struct Conversation {
        let name: ConversationName
        let last: SyncOplog
        /// The number of oplogs above the read mark.
        let unread: Int
    }

    /// Returns the conversations of a channel, without recalled oplogs and tombstones.
    func conversations(of channel: LocalChannel) throws(SyncError) -> [Conversation] {
        let rows = try file.access("reading conversations") { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT o.conversation, sum(o.oplog_id > coalesce(m.upto, 0))
                        FROM oplog o LEFT JOIN read_mark m USING (channel_id, conversation)
                        WHERE o.channel_id = ? AND o.conversation IS NOT NULL AND o.recalls = 0 AND NOT o.is_recalled
                        GROUP BY o.conversation
                        """), arguments: [channel.row])
        }
        var conversations: [Conversation] = []
        for row in rows {
            let name: String = row[0]
            guard let last = try history(of: channel, name, before: nil, limit: 1).first else { continue }
            conversations.append(Conversation(name: ConversationName(name), last: last, unread: row[1]))
        }
        return conversations
    }

    /// Stores that the user has read a conversation up to an oplog. A lower number than before has no effect.
    func markRead(_ conversation: String, upTo oplogID: Int64, in channel: LocalChannel) throws(SyncError) {
        try file.change("storing a read mark") { db in
            try db.cachedStatement(
                sql: """
                    INSERT INTO read_mark (channel_id, conversation, upto) VALUES (?, ?, ?)
                    ON CONFLICT DO UPDATE SET upto = max(upto, excluded.upto)
                    """
            ).execute(arguments: [channel.row, conversation, oplogID])
        }
    }
}
