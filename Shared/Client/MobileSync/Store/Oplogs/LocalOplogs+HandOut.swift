import Foundation
import GRDB
import SyncModel

/// Hand-outs and confirmations.
extension LocalOplogs {
    /// The columns of an oplog that the app receives.
    static let shownColumns = """
        oplog_id, payload, is_binary, third_message_id, created_at_ms, recalls, is_replay, hand_outs, repeats,
        conversation
        """

    /// Prepares the oplogs after the store was opened: handed-out oplogs that the app did not confirm wait again. An
    /// oplog at the limit of hand-outs becomes a dead letter.
    ///
    /// - Returns: the rows of the channels with waiting oplogs.
    func startOver() throws(SyncError) -> [Int64] {
        try file.change("preparing hand-outs") { db in
            try db.execute(
                sql: "UPDATE oplog SET state = ?, needs_report = 1 WHERE state = ? AND hand_outs >= ?",
                arguments: [OplogState.dead.rawValue, OplogState.handedOut.rawValue, Limits.resendHandOuts])
            try db.execute(
                sql: "UPDATE oplog SET state = ? WHERE state = ?",
                arguments: [OplogState.waiting.rawValue, OplogState.handedOut.rawValue])
        }
        return try file.access("reading the channels") { db in
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT id FROM channel
                    WHERE EXISTS (SELECT 1 FROM oplog WHERE state = ? AND channel_id = channel.id)
                    """, arguments: [OplogState.waiting.rawValue])
        }
    }

    /// Returns the ids of the first waiting oplogs of a channel, in ascending order.
    func waiting(in channel: LocalChannel, limit: Int) throws(SyncError) -> [Int64] {
        try file.access("reading oplogs") { db in
            try Int64.fetchAll(
                db.cachedStatement(
                    sql: "SELECT oplog_id FROM oplog WHERE state = ? AND channel_id = ? ORDER BY oplog_id LIMIT ?"),
                arguments: [OplogState.waiting.rawValue, channel.row, limit])
        }
    }

    /// Counts a hand-out, then returns the oplog for the app. Returns nil when the oplog no longer waits.
    ///
    /// A resend is flushed to the disk. Other hand-outs are frequent and are not flushed: the count survives the end of
    /// the process, and after a power failure the oplog can be handed out once too often.
    ///
    /// - Parameter isRepeat: whether this is a resend of an oplog that the app already has.
    func handOut(
        _ oplogID: Int64, of channel: LocalChannel, isRepeat: Bool
    ) throws(SyncError) -> SyncOplog? {
        try file.access("handing out an oplog") { db in
            if isRepeat { return try count(oplogID, of: channel, isRepeat: true, in: db) }
            // The pragma works only outside of a transaction, and only when it is prepared anew.
            try db.execute(sql: "PRAGMA synchronous = NORMAL")
            let oplog = Result { try count(oplogID, of: channel, isRepeat: false, in: db) }
            try db.execute(sql: "PRAGMA synchronous = FULL")
            return try oplog.get()
        }
    }

    private func count(
        _ oplogID: Int64, of channel: LocalChannel, isRepeat: Bool, in db: Database
    ) throws -> SyncOplog? {
        if !isRepeat, try expire(oplogID, of: channel, in: db) { return nil }
        let statement = try db.cachedStatement(
            sql: """
                UPDATE oplog SET state = ?, was_shown = 1, hand_outs = hand_outs + 1,
                \(isRepeat ? "repeats = repeats + 1, needs_report = 1" : "repeats = repeats")
                WHERE channel_id = ? AND oplog_id = ? AND state = ? RETURNING \(Self.shownColumns)
                """)
        // `fetchAll` reads to the end although there is at most one row, because the statement commits only at its end.
        return try Row.fetchAll(
            statement,
            arguments: [
                OplogState.handedOut.rawValue, channel.row, oplogID,
                (isRepeat ? OplogState.handedOut : .waiting).rawValue,
            ]
        ).first.map { try oplog(from: $0, of: channel) }
    }

    /// Leaves an expired oplog that the app never received to the history (K2, D11).
    private func expire(_ oplogID: Int64, of channel: LocalChannel, in db: Database) throws -> Bool {
        // The device's own clock can be wrong by years.
        guard let now = clock.serviceTime?.milliseconds else { return false }
        try db.cachedStatement(
            sql: """
                UPDATE oplog SET state = \(OplogState.history.rawValue) WHERE channel_id = ? AND oplog_id = ?
                AND state = \(OplogState.waiting.rawValue) AND hand_outs = 0 AND valid_until_ms BETWEEN 1 AND ?
                """
        ).execute(arguments: [channel.row, oplogID, now])
        return db.changesCount > 0
    }

    /// Creates the app's oplog from a row with `shownColumns`.
    func oplog(from row: Row, of channel: LocalChannel) throws -> SyncOplog {
        let stored: Data = row[1]
        let payload = try file.cipher?.open(stored, channelRow: channel.row, oplogID: row[0]) ?? stored
        let thirdMessageID: String = row[3]
        let recalls: Int64 = row[5]
        return SyncOplog(
            bizType: channel.key.bizType, oplogID: row[0], payload: [UInt8](payload), isBinary: row[2],
            thirdMessageID: thirdMessageID.isEmpty ? nil : thirdMessageID,
            conversation: row[9], createdAt: row[4],
            userID: channel.userID, recalls: recalls == 0 ? nil : recalls,
            isReplay: row[6], channelRow: channel.row, state: ResendLadder.State(repeats: row[8], handOuts: row[7]))
    }

    /// Records durably that the app has processed oplogs. Unknown and confirmed oplogs are ignored.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        try file.change("confirming oplogs") { db in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE oplog SET state = ?1, needs_report = 1
                    WHERE channel_id = ?2 AND oplog_id = ?3 AND state NOT IN (?1, \(OplogState.history.rawValue))
                    """)
            for oplog in oplogs {
                try statement.execute(arguments: [
                    OplogState.confirmed.rawValue, oplog.channelRow, oplog.oplogID,
                ])
            }
        }
    }

    /// Records durably that oplogs are dead letters. An oplog that the app has confirmed meanwhile stays confirmed.
    func markDead(_ waits: [ResendSchedule.Wait]) throws(SyncError) {
        try file.change("storing dead letters") { db in
            let statement = try db.cachedStatement(
                sql: """
                    UPDATE oplog SET state = ?, needs_report = 1 WHERE channel_id = ? AND oplog_id = ? AND state = ?
                    """)
            for wait in waits {
                try statement.execute(arguments: [
                    OplogState.dead.rawValue, wait.channelRow, wait.oplogID, OplogState.handedOut.rawValue,
                ])
            }
        }
    }
}
