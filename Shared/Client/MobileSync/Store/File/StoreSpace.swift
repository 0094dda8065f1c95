import DeviceProtocol
import GRDB
import SyncModel

/// The size limit of a local store, and the deletion of old oplogs (K8). Not thread-safe.
struct StoreSpace {
    let file: LocalStoreFile
    let channels: LocalChannels
    /// The largest size in bytes.
    let limit: Int

    /// The smallest number of rows in one deletion.
    private static let fewestDropped = 64

    /// Frees space for more bytes: deletes confirmed oplogs and history, oldest first, in the channel that has the most
    /// of them.
    ///
    /// - Returns: false when no such oplog is left. Unconfirmed oplogs stay.
    func free(for bytes: Int) throws(SyncError) -> Bool {
        guard try !hasSpace(for: bytes) else { return true }
        // Frees more than is needed, so that not every push must delete.
        while try !hasSpace(for: bytes + limit / 20) {
            guard try dropOldest() else { return try hasSpace(for: bytes) }
        }
        return true
    }

    private func hasSpace(for bytes: Int) throws(SyncError) -> Bool {
        try file.access("measuring the store") { db in
            try Self.hasSpace(for: bytes, within: limit, in: db)
        }
    }

    /// Whether a store with this limit has space for more bytes.
    static func hasSpace(for bytes: Int, within limit: Int, in db: Database) throws -> Bool {
        let pages = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA page_count")) ?? 0
        let free = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA freelist_count")) ?? 0
        let size = try Int.fetchOne(db.cachedStatement(sql: "PRAGMA page_size")) ?? 0
        return (pages - free) * size + bytes <= limit
    }

    /// The approximate size of entries in the store.
    static func bytes(of entries: some Sequence<Mss_Device_V1_Entry>) -> Int {
        // The index has the conversation, too.
        entries.reduce(0) {
            $0 + $1.payload.count + $1.thirdMessageID.utf8.count + 2 * $1.conversation.utf8.count + 160
        }
    }

    /// The channels of device ids that the service refused. Their confirmations are not reported.
    private var formerDeviceIDs: String { "kind = \(ChannelKind.device.rawValue) AND user_id <> ''" }

    private func dropOldest() throws(SyncError) -> Bool {
        let droppable = """
            state IN (\(OplogState.confirmed.rawValue), \(OplogState.history.rawValue)) AND (NOT needs_report
                OR channel_id IN (SELECT id FROM channel WHERE \(formerDeviceIDs)))
            """
        var dropped: LocalChannel?
        try file.change("freeing space") { db in
            let fullest = try Row.fetchOne(
                db,
                sql: """
                    SELECT channel_id, count(*) FROM oplog WHERE \(droppable)
                    GROUP BY channel_id ORDER BY 2 DESC LIMIT 1
                    """)
            guard let fullest, var channel = channels.channel(row: fullest[0]) else { return }
            let count = min(fullest[1], max(Self.fewestDropped, fullest[1] / 4))
            let last = try Int64.fetchOne(
                db,
                sql: """
                    SELECT oplog_id FROM oplog WHERE channel_id = ? AND \(droppable)
                    ORDER BY oplog_id LIMIT 1 OFFSET ?
                    """, arguments: [channel.row, count - 1])
            guard let last else { return }
            try db.execute(
                sql: "DELETE FROM oplog WHERE channel_id = ? AND oplog_id <= ? AND \(droppable)",
                arguments: [channel.row, last])
            channel.range.dropped(upto: OplogID(last))
            try channels.update(channel, in: db)
            dropped = channel
        }
        dropped.map(channels.remember)
        return dropped != nil
    }
}
