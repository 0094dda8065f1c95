import DeviceProtocol
import Foundation
import GRDB
import SyncModel

/// The oplogs of a local store: their arrival, hand-outs, confirmations and history. Not thread-safe.
struct LocalOplogs {
    let file: LocalStoreFile
    let channels: LocalChannels
    let clock: ServiceClock
    let space: StoreSpace

    /// Stores an entry, or applies the rule of its origin when the oplog is already stored.
    func insert(
        _ entry: Mss_Device_V1_Entry, into channel: LocalChannel, as origin: OplogOrigin, in db: Database
    ) throws {
        // The app has seen an oplog that is replayed but no longer stored, because the store deletes only confirmed
        // ones. It has also seen an oplog of a list.
        let wasShown =
            origin == .history || origin == .again || (origin.isReplay && entry.oplogID <= channel.position.value)
        let payload =
            try file.cipher?.seal(entry.payload, channelRow: channel.row, oplogID: entry.oplogID) ?? entry.payload
        try db.cachedStatement(
            sql: """
                INSERT INTO oplog (
                    channel_id, oplog_id, payload, is_binary, third_message_id, created_at_ms, valid_until_ms, recalls,
                    is_replay, was_shown, state, conversation)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO \(origin.orIfKnown)
                """
        ).execute(arguments: [
            channel.row, entry.oplogID, payload, entry.binary, entry.thirdMessageID, entry.createdAtMs,
            entry.validUntilMs, entry.recalls, origin.isReplay, wasShown, origin.state.rawValue,
            entry.conversation.isEmpty ? nil : entry.conversation,
        ])
    }

    /// Stores the numbers of an oplog with results, which counts as confirmed. The client has read its payload.
    func insertConfirmed(_ entry: Mss_Device_V1_Entry, into channel: LocalChannel, in db: Database) throws {
        var entry = entry
        entry.payload = Data()
        try insert(entry, into: channel, as: .push, in: db)
        try db.cachedStatement(
            sql: """
                UPDATE oplog SET state = \(OplogState.confirmed.rawValue), needs_report = 1
                WHERE channel_id = ? AND oplog_id = ? AND state <> \(OplogState.confirmed.rawValue)
                """
        ).execute(arguments: [channel.row, entry.oplogID])
    }

    /// Deletes the oplog that a tombstone recalls, or hides it when the app has confirmed it.
    ///
    /// - Returns: whether the entry is for the app; false for a tombstone of an oplog that the app has never seen.
    func dropRecalled(by entry: Mss_Device_V1_Entry, of channel: LocalChannel, in db: Database) throws -> Bool {
        guard entry.recalls != 0 else { return true }
        try db.cachedStatement(
            sql: """
                UPDATE oplog SET is_recalled = 1, payload = x'' WHERE channel_id = ? AND oplog_id = ? AND state = ?
                """
        ).execute(arguments: [channel.row, entry.recalls, OplogState.confirmed.rawValue])
        let wasShown = try Bool.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM oplog WHERE channel_id = ? AND oplog_id = ? AND state <> ? RETURNING was_shown
                    """), arguments: [channel.row, entry.recalls, OplogState.confirmed.rawValue])
        return wasShown.first ?? true
    }

    /// Deletes the oplogs and read marks of a channel. Confirmations stay until the gateway has recorded them. The sync
    /// point stays, so that the data does not arrive again.
    func deleteAll(of channel: LocalChannel, in db: Database) throws {
        try db.execute(
            sql: "DELETE FROM oplog WHERE channel_id = ? AND NOT (state = ? AND needs_report)",
            arguments: [channel.row, OplogState.confirmed.rawValue])
        try db.execute(sql: "DELETE FROM read_mark WHERE channel_id = ?", arguments: [channel.row])
    }

    /// Encrypts all payloads with another key.
    static func rewrite(_ db: Database, from old: PayloadCipher?, to new: PayloadCipher?) throws {
        let update = try db.makeStatement(sql: "UPDATE oplog SET payload = ? WHERE channel_id = ? AND oplog_id = ?")
        let places = try Row.fetchAll(db, sql: "SELECT channel_id, oplog_id FROM oplog WHERE payload <> x''")
        for place in places {
            let (row, id): (Int64, Int64) = (place[0], place[1])
            let stored = try Data.fetchOne(
                db.cachedStatement(sql: "SELECT payload FROM oplog WHERE channel_id = ? AND oplog_id = ?"),
                arguments: [row, id])
            guard let stored else { continue }
            let payload = try old?.open(stored, channelRow: row, oplogID: id) ?? stored
            let written = try new?.seal(payload, channelRow: row, oplogID: id) ?? payload
            try update.execute(arguments: [written, row, id])
        }
    }
}
