import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

/// The channels of a local store with their sync points, cached in memory. Not thread-safe.
final class LocalChannels {
    private let file: LocalStoreFile
    private var channels: [LocalChannel.Key: LocalChannel] = [:]
    private var keysByRow: [Int64: LocalChannel.Key] = [:]

    /// Call `load` before any other use.
    init(file: LocalStoreFile) { self.file = file }

    /// Reads the channels from the database, and replaces the cached ones.
    func load() throws(SyncError) {
        let rows = try file.access("reading the channels") { db in
            try Row.fetchAll(
                db,
                sql: "SELECT id, kind, user_id, biz_type, sync_point, complete_from, complete_upto FROM channel")
        }
        (channels, keysByRow) = ([:], [:])
        for row in rows {
            guard let kind = ChannelKind(rawValue: row[1]) else { continue }
            let key = LocalChannel.Key(kind: kind, userID: row[2], bizType: row[3])
            remember(
                LocalChannel(
                    row: row[0], key: key, position: OplogID(row[4]),
                    range: LocalRange(from: OplogID(row[5]), upto: OplogID(row[6]))))
        }
    }

    /// Caches a channel in its committed state.
    func remember(_ channel: LocalChannel) {
        channels[channel.key] = channel
        keysByRow[channel.row] = channel.key
    }

    // MARK: In a transaction

    /// Returns the channel, and creates it when it does not exist. Call `remember` after the commit.
    func channel(_ key: LocalChannel.Key, in db: Database) throws -> LocalChannel {
        if let known = channels[key] { return known }
        try db.execute(
            sql: "INSERT INTO channel (kind, user_id, biz_type, sync_point) VALUES (?, ?, ?, 0)",
            arguments: [key.kind.rawValue, key.userID, key.bizType])
        return LocalChannel(row: db.lastInsertedRowID, key: key, position: .zero)
    }

    /// Writes the position and the range of a channel. Call `remember` after the commit.
    func update(_ channel: LocalChannel, in db: Database) throws {
        try db.cachedStatement(
            sql: "UPDATE channel SET sync_point = ?, complete_from = ?, complete_upto = ? WHERE id = ?"
        ).execute(arguments: [
            channel.position.value, channel.range.from.value, channel.range.upto.value, channel.row,
        ])
    }

    // MARK: From memory

    /// Returns the channel of a row.
    func channel(row: Int64) -> LocalChannel? { keysByRow[row].flatMap { channels[$0] } }

    /// Returns the channel of a kind and Sync ID, for user kinds that of this user.
    func channel(kind: Mss_Device_V1_ChannelKind, bizType: String, userID: String?) -> LocalChannel? {
        guard let kind = ChannelKind(wire: kind) else { return nil }
        return channels[LocalChannel.Key(kind: kind, userID: kind.needsUser ? userID ?? "" : "", bizType: bizType)]
    }

    /// Returns the channels of a Sync ID that this user can see. There is more than one only after the configuration
    /// was created again with another kind.
    func all(of bizType: String, visibleTo userID: String?) -> [LocalChannel] {
        channels.values.filter { $0.key.bizType.isSame(as: bizType) && $0.isVisible(to: userID) }
    }

    /// Returns all channels that this user can see.
    func all(visibleTo userID: String?) -> [LocalChannel] { channels.values.filter { $0.isVisible(to: userID) } }

    /// Returns sync points for Connect (`userID` nil) or Bind, as many as fit into the given bytes.
    ///
    /// Missing sync points are safe: the gateway then sends known data again, and the client drops it.
    func syncPoints(ofUser userID: String?, maxBytes: Int) -> [Mss_Device_V1_SyncPoint] {
        var left = maxBytes
        var points: [Mss_Device_V1_SyncPoint] = []
        let userID = userID ?? ""
        for channel in channels.values
        where channel.key.userID.isSame(as: userID) && channel.key.kind.needsUser != userID.isEmpty
            && channel.position > .zero
        {
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
}
