import DeviceProtocol
import Foundation
import GRDB
import SwiftProtobuf
import SyncModel

/// What a client has received, in one SQLite file: oplogs and sync points change in one transaction (spec K8).
///
/// An oplog is stored, handed out, confirmed by the app, and gone once the gateway has recorded that; its channel's sync
/// point stays. `synchronous=FULL`: a stored oplog is acknowledged and never sent again, so it must survive a power cut,
/// and the cost is one flush per push frame, not per oplog. Not thread-safe; it belongs to the engine.
final class LocalStore {
    private static let schema = 1

    private let database: DatabaseQueue
    private var channels: [LocalChannel.Key: LocalChannel] = [:]
    private var channelsByRow: [Int64: LocalChannel.Key] = [:]
    /// Made with the file: a new store is a new receiver (spec §1).
    let storeID: String

    /// Opens or creates the store.
    ///
    /// - Throws: `SyncError`: `store` when the file cannot be used, `foreignStore` when it is another's.
    init(path: String, instanceID: String, deviceID: String) throws(SyncError) {
        do {
            var configuration = Configuration()
            configuration.journalMode = .wal
            configuration.busyMode = .timeout(5)
            configuration.label = "mobile-sync"
            let database = try DatabaseQueue(path: path, configuration: configuration)
            let owner = try database.inDatabase { db in
                // After the journal mode, which sets NORMAL.
                try db.execute(sql: "PRAGMA synchronous = FULL")
                return try Self.prepare(db, instanceID: instanceID, deviceID: deviceID)
            }
            guard owner.instanceID == instanceID, owner.deviceID == deviceID else {
                throw SyncError(
                    .foreignStore,
                    "the store \(path) belongs to device \(owner.deviceID) of \(owner.instanceID); use another path")
            }
            self.database = database
            storeID = owner.storeID
            try loadChannels()
        } catch let error as SyncError {
            throw error
        } catch {
            throw SyncError(.store, "the store \(path) cannot be opened (\(error)); check folder, space and rights")
        }
    }

    private struct Owner {
        let storeID: String
        let instanceID: String
        let deviceID: String
    }

    private static func prepare(_ db: Database, instanceID: String, deviceID: String) throws -> Owner {
        var owner: Owner?
        try db.inTransaction(.immediate) {
            let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
            guard version <= schema else {
                throw SyncError(.store, "the store was written by a newer version of this library; update the app")
            }
            if version == 0 { try create(db, instanceID: instanceID, deviceID: deviceID) }
            if let row = try Row.fetchOne(db, sql: "SELECT store_id, instance_id, device_id FROM store") {
                owner = Owner(storeID: row[0], instanceID: row[1], deviceID: row[2])
            }
            return .commit
        }
        guard let owner else { throw SyncError(.store, "the store has lost its identity; delete the file") }
        return owner
    }

    private static func create(_ db: Database, instanceID: String, deviceID: String) throws {
        try db.execute(
            sql: """
                CREATE TABLE store (store_id TEXT NOT NULL, instance_id TEXT NOT NULL, device_id TEXT NOT NULL);
                CREATE TABLE channel (
                    id INTEGER PRIMARY KEY,
                    kind INTEGER NOT NULL,
                    user_id TEXT NOT NULL,
                    biz_type TEXT NOT NULL,
                    sync_point INTEGER NOT NULL,
                    UNIQUE (kind, user_id, biz_type));
                CREATE TABLE oplog (
                    channel_id INTEGER NOT NULL REFERENCES channel (id),
                    oplog_id INTEGER NOT NULL,
                    payload BLOB NOT NULL,
                    is_binary INTEGER NOT NULL,
                    third_message_id TEXT NOT NULL,
                    created_at_ms INTEGER NOT NULL,
                    -- The oplog that this one takes back; 0 for data.
                    recalls INTEGER NOT NULL,
                    -- It came by a re-read.
                    is_replay INTEGER NOT NULL,
                    -- The app has had it, or may have had it before it was deleted and read again.
                    was_shown INTEGER NOT NULL,
                    -- OplogState.
                    state INTEGER NOT NULL DEFAULT 0,
                    -- ResendLadder.State; counted before the app is given the oplog.
                    hand_outs INTEGER NOT NULL DEFAULT 0,
                    repeats INTEGER NOT NULL DEFAULT 0,
                    -- The gateway has not recorded that it was confirmed, repeated or given up.
                    needs_report INTEGER NOT NULL DEFAULT 0,
                    PRIMARY KEY (channel_id, oplog_id)) WITHOUT ROWID;
                -- Numbers of re-reads that were taken: one that comes again, as its acknowledgement was lost, is known.
                CREATE TABLE reread (number INTEGER PRIMARY KEY);
                CREATE INDEX oplog_state ON oplog (state, channel_id, oplog_id);
                CREATE INDEX oplog_to_report ON oplog (channel_id, oplog_id) WHERE needs_report;
                PRAGMA user_version = \(schema);
                """)
        var generator = SystemRandomNumberGenerator()
        let storeID = (0..<2).map { _ in
            let digits = String(generator.next() as UInt64, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }.joined()
        try db.execute(sql: "INSERT INTO store VALUES (?, ?, ?)", arguments: [storeID, instanceID, deviceID])
    }

    private func loadChannels() throws {
        let rows = try database.inDatabase { db in
            try Row.fetchAll(db, sql: "SELECT id, kind, user_id, biz_type, sync_point FROM channel")
        }
        for row in rows {
            guard let kind = ChannelKind(rawValue: row[1]) else { continue }
            let key = LocalChannel.Key(kind: kind, userID: row[2], bizType: row[3])
            remember(LocalChannel(row: row[0], key: key, position: OplogID(row[4])))
        }
    }

    private func remember(_ channel: LocalChannel) {
        channels[channel.key] = channel
        channelsByRow[channel.row] = channel.key
    }

    // MARK: Receiving

    /// Stores what is new of a push frame, in one transaction.
    ///
    /// - Parameters:
    ///   - batches: of known kinds; user channels belong to `userID`.
    ///   - bindNumber: goes into the acknowledgements of user channels.
    /// - Throws: `SyncError.store`; nothing of the frame is stored then, and nothing may be acknowledged.
    func store(
        _ batches: [Mss_Device_V1_ChannelBatch], userID: String?, bindNumber: UInt32
    ) throws(SyncError) -> StoreOutcome {
        let (outcome, changed) = try access("storing a push") { db in
            var outcome = StoreOutcome()
            var changed: [LocalChannel.Key: LocalChannel] = [:]
            try db.inTransaction(.immediate) {
                for batch in batches {
                    guard let kind = ChannelKind(wire: batch.kind) else { continue }
                    let key = LocalChannel.Key(
                        kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: batch.bizType)
                    var channel = try changed[key] ?? channels[key] ?? Self.insertChannel(key, in: db)
                    if batch.reread != 0 {
                        try Self.applyReread(batch, to: channel, outcome: &outcome, in: db)
                    } else {
                        try Self.apply(batch, to: &channel, bindNumber: bindNumber, outcome: &outcome, in: db)
                    }
                    changed[key] = channel
                }
                return .commit
            }
            return (outcome, changed)
        }
        for channel in changed.values { remember(channel) }
        return outcome
    }

    private static func insertChannel(_ key: LocalChannel.Key, in db: Database) throws -> LocalChannel {
        try db.execute(
            sql: "INSERT INTO channel (kind, user_id, biz_type, sync_point) VALUES (?, ?, ?, 0)",
            arguments: [key.kind.rawValue, key.userID, key.bizType])
        return LocalChannel(row: db.lastInsertedRowID, key: key, position: .zero)
    }

    private static func apply(
        _ batch: Mss_Device_V1_ChannelBatch, to channel: inout LocalChannel, bindNumber: UInt32,
        outcome: inout StoreOutcome, in db: Database
    ) throws {
        switch BatchFit(position: channel.position, after: OplogID(batch.after), upto: OplogID(batch.upto)) {
        case .gap:
            outcome.foundGap = true
            return
        case .known:
            break
        case .applies:
            for entry in batch.entries
            where entry.oplogID > channel.position.value && entry.oplogID <= batch.upto {
                guard try dropRecalled(by: entry, of: channel, in: db) else { continue }
                // A re-read may have brought it already, and the app may have confirmed it since.
                try insert(entry, into: channel, isReplay: false, orIfKnown: "NOTHING", in: db)
                outcome.filledChannels.insert(channel.row)
            }
            try db.cachedStatement(
                sql: """
                    DELETE FROM oplog WHERE channel_id = ? AND oplog_id > ? AND oplog_id <= ? AND state = ?
                    AND NOT needs_report
                    """
            ).execute(arguments: [
                channel.row, channel.position.value, batch.upto, OplogState.confirmed.rawValue,
            ])
            channel.position = OplogID(batch.upto)
            try db.cachedStatement(sql: "UPDATE channel SET sync_point = ? WHERE id = ?")
                .execute(arguments: [batch.upto, channel.row])
        }
        outcome.acknowledge(channel, bindNumber: bindNumber)
    }

    /// Stores entries of a re-read as never handed out, but for those that the app has confirmed; no sync point moves.
    private static func applyReread(
        _ batch: Mss_Device_V1_ChannelBatch, to channel: LocalChannel, outcome: inout StoreOutcome, in db: Database
    ) throws {
        outcome.rereads.append(batch.reread)
        try db.cachedStatement(sql: "INSERT OR IGNORE INTO reread VALUES (?)")
            .execute(arguments: [Int64(bitPattern: batch.reread)])
        guard db.changesCount > 0 else { return }
        for entry in batch.entries {
            guard try dropRecalled(by: entry, of: channel, in: db) else { continue }
            try insert(
                entry, into: channel, isReplay: true,
                orIfKnown: """
                    UPDATE SET state = \(OplogState.waiting.rawValue), hand_outs = 0, repeats = 0, needs_report = 0,
                    is_replay = 1 WHERE state <> \(OplogState.confirmed.rawValue)
                    """, in: db)
            outcome.filledChannels.insert(channel.row)
        }
    }

    private static func insert(
        _ entry: Mss_Device_V1_Entry, into channel: LocalChannel, isReplay: Bool, orIfKnown: String, in db: Database
    ) throws {
        // A replay of what is not here any more was confirmed and forgotten: the app has had it.
        let wasShown = isReplay && entry.oplogID <= channel.position.value
        try db.cachedStatement(
            sql: """
                INSERT INTO oplog
                (channel_id, oplog_id, payload, is_binary, third_message_id, created_at_ms, recalls, is_replay, was_shown)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO \(orIfKnown)
                """
        ).execute(arguments: [
            channel.row, entry.oplogID, entry.payload, entry.binary, entry.thirdMessageID, entry.createdAtMs,
            entry.recalls, isReplay, wasShown,
        ])
    }

    /// Deletes what a tombstone recalls, unless the app has confirmed it; anything else recalls nothing.
    ///
    /// - Returns: whether the entry is for the app: false for a tombstone of what the app has never seen.
    private static func dropRecalled(
        by entry: Mss_Device_V1_Entry, of channel: LocalChannel, in db: Database
    ) throws -> Bool {
        guard entry.recalls != 0 else { return true }
        let wasShown = try Bool.fetchAll(
            db.cachedStatement(
                sql: """
                    DELETE FROM oplog WHERE channel_id = ? AND oplog_id = ? AND state <> ? RETURNING was_shown
                    """), arguments: [channel.row, entry.recalls, OplogState.confirmed.rawValue])
        return wasShown.first ?? true
    }

    /// Sync points for Connect (`userID` nil) or Bind, of channels that have one, as many as fit the bytes given.
    ///
    /// Leaving some out is safe: the gateway then sends more than is needed, and it is dropped as known.
    func syncPoints(ofUser userID: String?, maxBytes: Int) -> [Mss_Device_V1_SyncPoint] {
        var left = maxBytes
        var points: [Mss_Device_V1_SyncPoint] = []
        for channel in channels.values where channel.key.userID.isSame(as: userID ?? "") && channel.position > .zero {
            left -= channel.key.bizType.utf8.count + 24
            guard left >= 0 else { break }
            points.append(
                .with {
                    $0.kind = channel.key.kind.wire
                    $0.bizType = channel.key.bizType
                    $0.oplogID = channel.position.value
                })
        }
        return points
    }

    // MARK: Access

    /// The channel of a row.
    func channel(row: Int64) -> LocalChannel? { channelsByRow[row].flatMap { channels[$0] } }

    /// The channel of a kind and business type, for users' kinds of this user.
    func channel(kind: Mss_Device_V1_ChannelKind, bizType: String, userID: String?) -> LocalChannel? {
        guard let kind = ChannelKind(wire: kind) else { return nil }
        return channels[LocalChannel.Key(kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: bizType)]
    }

    /// Performs a step on the database.
    ///
    /// - Throws: `SyncError.store` with the step's name.
    func access<Value>(_ step: String, _ body: (Database) throws -> Value) throws(SyncError) -> Value {
        do {
            return try database.inDatabase(body)
        } catch {
            throw error as? SyncError
                ?? SyncError(.store, "\(step) failed (\(error)); check space and rights of the store")
        }
    }

    /// The same, in one transaction.
    func change(_ step: String, _ body: (Database) throws -> Void) throws(SyncError) {
        try access(step) { db in
            try db.inTransaction(.immediate) {
                try body(db)
                return .commit
            }
        }
    }
}
