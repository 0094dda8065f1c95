import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

/// Which business types the app takes, and which are being sent to it again.
extension LocalStore {
    /// A business type that is being sent again.
    struct Recovery: Hashable, Sendable {
        /// Who was bound when the app asked for it; empty: nobody, or it is not known yet whose data it is.
        let userID: String
        let bizType: String
        /// Everything up to here has come.
        let nextAfter: Int64
        /// It ends here; 0: not known before the first page.
        let upto: Int64
    }

    /// Reads the list once, when the store is opened.
    func loadSuspended() throws(SyncError) {
        suspended = try access("reading subscriptions") { db in
            Set(try String.fetchAll(db, sql: "SELECT biz_type FROM suspended"))
        }
    }

    /// Whether the app does not take a business type now.
    func isSuspended(_ bizType: String) -> Bool { suspended.contains(bizType) }

    /// The app takes a business type no more, or again.
    ///
    /// - Throws: `SyncError.invalidArgument` for more than the protocol takes: the gateway would turn the client away
    ///   for good.
    func setSuspended(_ isSuspended: Bool, bizType: String) throws(SyncError) {
        guard !isSuspended || suspended.contains(bizType) || suspended.count < Limits.suspendedBizTypes else {
            throw SyncError(
                .invalidArgument, "\(Limits.suspendedBizTypes) Sync IDs are suspended already; resume one of them first"
            )
        }
        try change("changing subscriptions") { db in
            try db.execute(
                sql: isSuspended
                    ? "INSERT OR IGNORE INTO suspended VALUES (?)" : "DELETE FROM suspended WHERE biz_type = ?",
                arguments: [bizType])
        }
        if isSuspended { suspended.insert(bizType) } else { suspended.remove(bizType) }
    }

    /// Deletes what is here of a business type, of the device and this user; only confirmations that the gateway has
    /// not recorded stay until it has. Sync points stay, so that nothing comes again.
    func deleteData(of bizType: String, userID: String?) throws(SyncError) {
        let emptied = channels(of: bizType, visibleTo: userID).map { channel in
            var channel = channel
            channel.range.dropped(upto: max(channel.position, channel.range.upto))
            return channel
        }
        try change("deleting a subscription's data") { db in
            for channel in emptied {
                try db.execute(
                    sql: "DELETE FROM oplog WHERE channel_id = ? AND NOT (state = ? AND needs_report)",
                    arguments: [channel.row, OplogState.confirmed.rawValue])
                try update(channel, in: db)
            }
            try db.execute(
                sql: "DELETE FROM recovery WHERE biz_type = ? AND user_id IN ('', ?)",
                arguments: [bizType, userID ?? ""])
        }
        for channel in emptied { remember(channel) }
    }

    // MARK: Sending again

    /// Notes that a business type is to be sent again, from the beginning.
    func beginRecovery(of bizType: String, userID: String?) throws(SyncError) {
        try change("beginning a recovery") { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO recovery VALUES (?, ?, 0, 0)", arguments: [userID ?? "", bizType])
        }
    }

    /// What is to be sent again to this user and device, without what is suspended, and without those of which the gateway
    /// does not know yet all that the app has confirmed: being sent again ends that.
    func recoveries(forUser userID: String?) throws(SyncError) -> [Recovery] {
        try access("reading recoveries") { db in
            try Row.fetchAll(
                db.cachedStatement(
                    sql: """
                        SELECT user_id, biz_type, next_after, upto FROM recovery WHERE user_id IN ('', ?)
                        AND biz_type NOT IN (SELECT biz_type FROM suspended)
                        AND NOT EXISTS (
                            SELECT 1 FROM oplog JOIN channel ON channel.id = channel_id
                            WHERE needs_report AND state = ? AND channel.biz_type = recovery.biz_type
                                AND channel.user_id IN ('', ?))
                        ORDER BY user_id, biz_type
                        """), arguments: [userID ?? "", OplogState.confirmed.rawValue, userID ?? ""]
            ).map { Recovery(userID: $0[0], bizType: $0[1], nextAfter: $0[2], upto: $0[3]) }
        }
    }

    /// A recovery that was asked for while nobody was bound is of a user's data: it is this user's now, from the
    /// beginning.
    func adopt(_ recovery: Recovery, userID: String) throws(SyncError) {
        try change("adopting a recovery") { db in
            try db.execute(
                sql: """
                    UPDATE OR REPLACE recovery SET user_id = ?, next_after = 0, upto = 0
                    WHERE user_id = ? AND biz_type = ?
                    """, arguments: [userID, recovery.userID, recovery.bizType])
        }
    }

    /// Stores a page of a recovery for the app, and how far it has come, in one transaction.
    ///
    /// - Returns: the channel, when it has something for the app.
    func keep(
        _ page: Mss_Device_V1_HistoryPage, of key: LocalChannel.Key, for recovery: Recovery
    ) throws(SyncError) -> LocalChannel? {
        let upto = recovery.upto == 0 ? page.head : recovery.upto
        var kept: LocalChannel?
        try change("storing a recovery") { db in
            // The app may have ended it meanwhile.
            let isAskedFor = try Bool.fetchOne(
                db, sql: "SELECT 1 FROM recovery WHERE user_id = ? AND biz_type = ? AND next_after = ?",
                arguments: [recovery.userID, recovery.bizType, recovery.nextAfter])
            guard isAskedFor == true else { return }
            if !page.entries.isEmpty {
                let channel = try channel(key, in: db)
                for entry in page.entries where entry.oplogID <= upto {
                    try insert(entry, into: channel, as: .recovery, in: db)
                }
                kept = channel
            }
            let goesOn = page.more && page.next < upto
            try db.execute(
                sql: goesOn
                    ? "UPDATE recovery SET next_after = ?3, upto = ?4 WHERE user_id = ?1 AND biz_type = ?2"
                    : "DELETE FROM recovery WHERE user_id = ?1 AND biz_type = ?2 AND ?3 = ?3 AND ?4 = ?4",
                arguments: [recovery.userID, recovery.bizType, page.next, upto])
        }
        kept.map(remember)
        return kept
    }
}
