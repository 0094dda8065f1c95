import DeviceProtocol
import Foundation
import GRDB
import SwiftProtobuf
import SyncModel

/// What a client has received, in one SQLite file: oplogs and sync points change in one transaction (spec K8).
///
/// An oplog is stored, confirmed by the app, and gone once the gateway has recorded that; its channel's sync point
/// stays. `synchronous=FULL`: a stored oplog is acknowledged and never sent again, so it must survive a power cut, and
/// the cost is one flush per push frame, not per oplog. Not thread-safe; it belongs to the engine.
final class LocalStore {
    private static let schema = 1
    /// Confirmations in one report.
    static let reportOplogs = 500

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
                    is_confirmed INTEGER NOT NULL DEFAULT 0,
                    PRIMARY KEY (channel_id, oplog_id)) WITHOUT ROWID;
                CREATE INDEX oplog_confirmed ON oplog (channel_id, oplog_id) WHERE is_confirmed;
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
        do {
            let (outcome, changed) = try database.inDatabase { db in
                var outcome = StoreOutcome()
                var changed: [LocalChannel.Key: LocalChannel] = [:]
                try db.inTransaction(.immediate) {
                    for batch in batches {
                        guard let kind = ChannelKind(wire: batch.kind) else { continue }
                        let key = LocalChannel.Key(
                            kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: batch.bizType)
                        var channel = try changed[key] ?? channels[key] ?? Self.insertChannel(key, in: db)
                        try Self.apply(batch, to: &channel, bindNumber: bindNumber, outcome: &outcome, in: db)
                        changed[key] = channel
                    }
                    return .commit
                }
                return (outcome, changed)
            }
            for channel in changed.values { remember(channel) }
            return outcome
        } catch {
            throw Self.failure(error, "storing a push")
        }
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
            let statement = try db.cachedStatement(
                sql: """
                    INSERT OR IGNORE INTO oplog
                    (channel_id, oplog_id, payload, is_binary, third_message_id, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)
                    """)
            for entry in batch.entries
            where entry.oplogID > channel.position.value && entry.oplogID <= batch.upto {
                try statement.execute(arguments: [
                    channel.row, entry.oplogID, entry.payload, entry.binary, entry.thirdMessageID, entry.createdAtMs,
                ])
                outcome.filledChannels.insert(channel.row)
            }
            channel.position = OplogID(batch.upto)
            try db.cachedStatement(sql: "UPDATE channel SET sync_point = ? WHERE id = ?")
                .execute(arguments: [batch.upto, channel.row])
        }
        outcome.acknowledge(channel, bindNumber: bindNumber)
    }

    /// Sync points for Connect (`userID` nil) or Bind, of channels that have one, as many as fit the bytes given.
    ///
    /// Leaving some out is safe: the gateway then sends more than is needed, and it is dropped as known.
    func syncPoints(ofUser userID: String?, maxBytes: Int) -> [Mss_Device_V1_SyncPoint] {
        var left = maxBytes
        var points: [Mss_Device_V1_SyncPoint] = []
        for channel in channels.values where channel.key.userID == userID ?? "" && channel.position > .zero {
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

    // MARK: Handing out

    /// The channel of a row.
    func channel(row: Int64) -> LocalChannel? { channelsByRow[row].flatMap { channels[$0] } }

    /// Rows of the channels that hold unconfirmed oplogs.
    func channelsToHandOut() throws(SyncError) -> [Int64] {
        do {
            return try database.inDatabase { db in
                try Int64.fetchAll(
                    db,
                    sql: """
                        SELECT id FROM channel
                        WHERE EXISTS (SELECT 1 FROM oplog WHERE channel_id = channel.id AND NOT is_confirmed)
                        """)
            }
        } catch {
            throw Self.failure(error, "reading the channels")
        }
    }

    /// Unconfirmed oplogs of a channel above a position, in ascending id.
    func page(of channel: LocalChannel, after oplogID: Int64, limit: Int) throws(SyncError) -> [SyncOplog] {
        do {
            return try database.inDatabase { db in
                try Row.fetchAll(
                    db.cachedStatement(
                        sql: """
                            SELECT oplog_id, payload, is_binary, third_message_id, created_at_ms FROM oplog
                            WHERE channel_id = ? AND oplog_id > ? AND NOT is_confirmed ORDER BY oplog_id LIMIT ?
                            """), arguments: [channel.row, oplogID, limit]
                ).map { row in
                    let payload: Data = row[1]
                    let thirdMessageID: String = row[3]
                    return SyncOplog(
                        bizType: channel.key.bizType, oplogID: row[0], payload: [UInt8](payload), isBinary: row[2],
                        thirdMessageID: thirdMessageID.isEmpty ? nil : thirdMessageID, createdAt: row[4],
                        userID: channel.key.userID.isEmpty ? nil : channel.key.userID, channelRow: channel.row)
                }
            }
        } catch {
            throw Self.failure(error, "reading oplogs")
        }
    }

    /// Notes durably that the app has processed these; what is unknown or was confirmed before changes nothing.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        do {
            try database.inDatabase { db in
                try db.inTransaction(.immediate) {
                    let statement = try db.cachedStatement(
                        sql: "UPDATE oplog SET is_confirmed = 1 WHERE channel_id = ? AND oplog_id = ?")
                    for oplog in oplogs { try statement.execute(arguments: [oplog.channelRow, oplog.oplogID]) }
                    return .commit
                }
            }
        } catch {
            throw Self.failure(error, "confirming oplogs")
        }
    }

    // MARK: Reporting

    /// Confirmed oplogs that the gateway has not recorded, of the device's channels and this user's.
    func confirmed(ofUser userID: String?, bindNumber: UInt32) throws(SyncError) -> [Mss_Device_V1_ConfirmedOplogs] {
        do {
            var found: [Int64: [Int64]] = [:]
            try database.inDatabase { db in
                let rows = try Row.fetchCursor(
                    db.cachedStatement(
                        sql: """
                            SELECT channel_id, oplog_id FROM oplog JOIN channel ON channel.id = channel_id
                            WHERE is_confirmed AND user_id IN ('', ?) ORDER BY channel_id, oplog_id LIMIT ?
                            """), arguments: [userID ?? "", Self.reportOplogs])
                while let row = try rows.next() { found[row[0], default: []].append(row[1]) }
            }
            return found.keys.sorted().compactMap { row in
                channel(row: row).map { channel in
                    .with {
                        $0.kind = channel.key.kind.wire
                        $0.bizType = channel.key.bizType
                        $0.bindNumber = channel.key.kind.needsUser ? bindNumber : 0
                        $0.oplogIds = found[row] ?? []
                    }
                }
            }
        } catch {
            throw Self.failure(error, "reading confirmations")
        }
    }

    /// Deletes oplogs whose confirmation the gateway has recorded; the sync points keep them from coming again.
    func forget(_ reported: [Mss_Device_V1_ConfirmedOplogs], ofUser userID: String?) throws(SyncError) {
        do {
            try database.inDatabase { db in
                try db.inTransaction(.immediate) {
                    let statement = try db.cachedStatement(
                        sql: "DELETE FROM oplog WHERE channel_id = ? AND oplog_id = ? AND is_confirmed")
                    for item in reported {
                        guard let kind = ChannelKind(wire: item.kind) else { continue }
                        let key = LocalChannel.Key(
                            kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: item.bizType)
                        guard let channel = channels[key] else { continue }
                        for id in item.oplogIds { try statement.execute(arguments: [channel.row, id]) }
                    }
                    return .commit
                }
            }
        } catch {
            throw Self.failure(error, "forgetting reported oplogs")
        }
    }

    private static func failure(_ error: any Error, _ step: String) -> SyncError {
        error as? SyncError ?? SyncError(.store, "\(step) failed (\(error)); check space and rights of the store")
    }
}
