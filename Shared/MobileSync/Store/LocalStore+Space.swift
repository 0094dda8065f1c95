import GRDB
import SyncModel

/// How much the store may take, and what goes when that is used up (spec K8).
extension LocalStore {
    /// Rows that are deleted at once, at least.
    private static let fewestDropped = 64

    /// Sees to it that so many bytes more find room: what is confirmed, or came for a list, goes; the oldest first, in
    /// the channel that has the most of it.
    ///
    /// - Returns: false when nothing is left that may go: what the app has not confirmed stays.
    func makeRoom(for bytes: Int) throws(SyncError) -> Bool {
        guard try !hasRoom(for: bytes) else { return true }
        // A little more than is needed, so that not every push has to look for room.
        while try !hasRoom(for: bytes + limit / 20) {
            guard try dropOldest() else { return try hasRoom(for: bytes) }
        }
        return true
    }

    private func hasRoom(for bytes: Int) throws(SyncError) -> Bool {
        try access("measuring the store") { db in
            try OperationOutbox.hasRoom(for: bytes, within: limit, in: db)
        }
    }

    /// Channels of device ids that the service refused: nobody is told of what is confirmed there.
    private var ofFormerIDs: String { "kind = \(ChannelKind.device.rawValue) AND user_id <> ''" }

    private func dropOldest() throws(SyncError) -> Bool {
        let droppable = """
            state IN (\(OplogState.confirmed.rawValue), \(OplogState.history.rawValue)) AND (NOT needs_report
                OR channel_id IN (SELECT id FROM channel WHERE \(ofFormerIDs)))
            """
        var dropped: LocalChannel?
        try change("making room") { db in
            let fullest = try Row.fetchOne(
                db,
                sql: """
                    SELECT channel_id, count(*) FROM oplog WHERE \(droppable)
                    GROUP BY channel_id ORDER BY 2 DESC LIMIT 1
                    """)
            guard let fullest, var channel = channel(row: fullest[0]) else { return }
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
            try update(channel, in: db)
            dropped = channel
        }
        dropped.map(remember)
        return dropped != nil
    }
}
