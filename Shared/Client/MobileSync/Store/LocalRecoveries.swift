import DeviceProtocol
import GRDB
import SyncModel

/// The recoveries of a local store: Sync IDs whose data is requested again. Not thread-safe.
struct LocalRecoveries {
    /// A request for all data of a Sync ID.
    struct Recovery: Hashable, Sendable {
        /// The bound user at the time of the request. Empty when no user was bound.
        let userID: String
        let bizType: String
        /// Every oplog up to this id has arrived.
        let nextAfter: Int64
        /// The last id of the recovery; 0 before the first page.
        let upto: Int64
    }

    let file: LocalStoreFile
    let channels: LocalChannels
    let oplogs: LocalOplogs

    /// Begins a recovery of a Sync ID, from the first oplog.
    func begin(of bizType: String, userID: String?) throws(SyncError) {
        try file.change("beginning a recovery") { db in
            try db.execute(
                sql: "INSERT OR REPLACE INTO recovery VALUES (?, ?, 0, 0)", arguments: [userID ?? "", bizType])
        }
    }

    /// Returns the open recoveries of this user and the device. It leaves out suspended Sync IDs, and those with
    /// unreported confirmations, because a recovery resets the confirmations.
    func open(forUser userID: String?) throws(SyncError) -> [Recovery] {
        try file.access("reading recoveries") { db in
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

    /// Assigns a recovery to this user and restarts it. It was requested without a bound user, and the data belongs to
    /// a user.
    func adopt(_ recovery: Recovery, userID: String) throws(SyncError) {
        try file.change("assigning a recovery") { db in
            try db.execute(
                sql: """
                    UPDATE OR REPLACE recovery SET user_id = ?, next_after = 0, upto = 0
                    WHERE user_id = ? AND biz_type = ?
                    """, arguments: [userID, recovery.userID, recovery.bizType])
        }
    }

    /// Stores a page of a recovery for the app, and the progress of the recovery, in one transaction.
    ///
    /// - Returns: the channel; nil when the page has no data for the app.
    func store(
        _ page: Mss_Device_V1_HistoryPage, of key: LocalChannel.Key, for recovery: Recovery
    ) throws(SyncError) -> LocalChannel? {
        let upto = recovery.upto == 0 ? page.head : recovery.upto
        var stored: LocalChannel?
        try file.change("storing a recovery") { db in
            // The app may have ended the recovery meanwhile.
            let isAskedFor = try Bool.fetchOne(
                db, sql: "SELECT 1 FROM recovery WHERE user_id = ? AND biz_type = ? AND next_after = ?",
                arguments: [recovery.userID, recovery.bizType, recovery.nextAfter])
            guard isAskedFor == true else { return }
            if !page.entries.isEmpty {
                let channel = try channels.channel(key, in: db)
                for entry in page.entries where entry.oplogID <= upto {
                    try oplogs.insert(entry, into: channel, as: .recovery, in: db)
                }
                stored = channel
            }
            let goesOn = page.more && page.next < upto
            try db.execute(
                sql: goesOn
                    ? "UPDATE recovery SET next_after = ?3, upto = ?4 WHERE user_id = ?1 AND biz_type = ?2"
                    : "DELETE FROM recovery WHERE user_id = ?1 AND biz_type = ?2 AND ?3 = ?3 AND ?4 = ?4",
                arguments: [recovery.userID, recovery.bizType, page.next, upto])
        }
        stored.map(channels.remember)
        return stored
    }
}
