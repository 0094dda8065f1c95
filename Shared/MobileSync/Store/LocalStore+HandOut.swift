import Foundation
import GRDB
import SyncModel

/// What the app is given, and what it has processed.
extension LocalStore {
    /// What the app sees of an oplog.
    static let shownColumns = """
        oplog_id, payload, is_binary, third_message_id, created_at_ms, recalls, is_replay, hand_outs, repeats
        """

    /// To be called once after opening: what was handed out and not confirmed waits again, unless it is spent.
    ///
    /// - Returns: rows of the channels in which oplogs wait.
    func startOver() throws(SyncError) -> [Int64] {
        try outbox.forgetOld()
        try change("starting over") { db in
            try db.execute(
                sql: "UPDATE oplog SET state = ?, needs_report = 1 WHERE state = ? AND hand_outs >= ?",
                arguments: [OplogState.dead.rawValue, OplogState.handedOut.rawValue, Limits.resendHandOuts])
            #if KNOWN_BAD
                if KnownBad.clientForgetsUnconfirmed.isOn { return }
            #endif
            try db.execute(
                sql: "UPDATE oplog SET state = ? WHERE state = ?",
                arguments: [OplogState.waiting.rawValue, OplogState.handedOut.rawValue])
        }
        return try access("reading the channels") { db in
            try Int64.fetchAll(
                db,
                sql: """
                    SELECT id FROM channel
                    WHERE EXISTS (SELECT 1 FROM oplog WHERE state = ? AND channel_id = channel.id)
                    """, arguments: [OplogState.waiting.rawValue])
        }
    }

    /// Ids of the first oplogs of a channel that wait, in ascending order.
    func waiting(in channel: LocalChannel, limit: Int) throws(SyncError) -> [Int64] {
        #if KNOWN_BAD
            let order = KnownBad.clientHandsOutDescending.isOn ? "oplog_id DESC" : "oplog_id"
        #else
            let order = "oplog_id"
        #endif
        return try access("reading oplogs") { db in
            try Int64.fetchAll(
                db.cachedStatement(
                    sql: "SELECT oplog_id FROM oplog WHERE state = ? AND channel_id = ? ORDER BY \(order) LIMIT ?"),
                arguments: [OplogState.waiting.rawValue, channel.row, limit])
        }
    }

    /// Counts a hand-out, then returns the oplog for the app; nil when it is not to be handed out (any more).
    ///
    /// A repeat is flushed. Other hand-outs are many and cost no flush: without one the count outlives the process,
    /// and when the power fails the oplog is handed out once more than it should be.
    ///
    /// - Parameter isRepeat: a step of the resend ladder, of an oplog that the app has.
    func handOut(
        _ oplogID: Int64, of channel: LocalChannel, isRepeat: Bool
    ) throws(SyncError) -> SyncOplog? {
        try access("handing out an oplog") { db in
            if isRepeat { return try count(oplogID, of: channel, isRepeat: true, in: db) }
            // Takes effect only outside of a transaction, and when it is prepared, hence anew each time.
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
        #if KNOWN_BAD
            if KnownBad.clientHandOutUncounted.isOn {
                let uncounted = "SELECT \(Self.shownColumns) FROM oplog WHERE channel_id = ? AND oplog_id = ?"
                let row = try Row.fetchOne(db, sql: uncounted, arguments: [channel.row, oplogID])
                _ = try Row.fetchAll(
                    db, sql: "UPDATE oplog SET state = ? WHERE channel_id = ? AND oplog_id = ? RETURNING 1",
                    arguments: [OplogState.handedOut.rawValue, channel.row, oplogID])
                return try row.map { try oplog(from: $0, of: channel) }
            }
        #endif
        // All rows are fetched, although there is one at most: the statement, and its commit, end with the last.
        return try Row.fetchAll(
            statement,
            arguments: [
                OplogState.handedOut.rawValue, channel.row, oplogID,
                (isRepeat ? OplogState.handedOut : .waiting).rawValue,
            ]
        ).first.map { try oplog(from: $0, of: channel) }
    }

    /// Leaves an oplog to lists that the app was never given and that is of no use any more (spec K2, D11).
    private func expire(_ oplogID: Int64, of channel: LocalChannel, in db: Database) throws -> Bool {
        // A device's clock alone may be years off.
        guard let now = serviceTime?.milliseconds else { return false }
        try db.cachedStatement(
            sql: """
                UPDATE oplog SET state = \(OplogState.history.rawValue) WHERE channel_id = ? AND oplog_id = ?
                AND state = \(OplogState.waiting.rawValue) AND hand_outs = 0 AND valid_until_ms BETWEEN 1 AND ?
                """
        ).execute(arguments: [channel.row, oplogID, now])
        return db.changesCount > 0
    }

    /// An oplog for the app, of a row of `shownColumns`.
    func oplog(from row: Row, of channel: LocalChannel) throws -> SyncOplog {
        let stored: Data = row[1]
        let payload = try cipher?.open(stored, channelRow: channel.row, oplogID: row[0]) ?? stored
        let thirdMessageID: String = row[3]
        let recalls: Int64 = row[5]
        return SyncOplog(
            bizType: channel.key.bizType, oplogID: row[0], payload: [UInt8](payload), isBinary: row[2],
            thirdMessageID: thirdMessageID.isEmpty ? nil : thirdMessageID, createdAt: row[4],
            userID: channel.userID, recalls: recalls == 0 ? nil : recalls,
            isReplay: row[6], channelRow: channel.row, state: ResendLadder.State(repeats: row[8], handOuts: row[7]))
    }

    /// Notes durably that the app has processed these; what is unknown or was confirmed before changes nothing.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        #if KNOWN_BAD
            if KnownBad.clientConfirmNotStored.isOn { return }
        #endif
        try change("confirming oplogs") { db in
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

    /// Notes durably that these are not handed out any more; one that the app has confirmed since stays confirmed.
    func giveUp(_ waits: [ResendSchedule.Wait]) throws(SyncError) {
        try change("giving up oplogs") { db in
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
