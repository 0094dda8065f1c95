import PostgreSQL
package import SyncModel

/// How far receivers have stored their channels; a sync point only rises (W8).
package enum SyncPointStore {
    /// One receiver's progress in one channel.
    package struct Advance: Sendable, Hashable {
        package var channelID: Int64
        /// Empty, as `storeID` is, where the channel has one sync point for its user or device.
        package var deviceID: String
        /// The local store of the device.
        package var storeID: String
        /// Set only for global data for users.
        package var userID: String
        package var upto: OplogID
        /// Up to here the local store itself has acknowledged or reported the channel. The rest up to `upto` was skipped,
        /// or was recorded by another store.
        package var acknowledged: OplogID
        /// The device that stored it, where `deviceID` is empty.
        package var storedBy: String

        package init(
            channelID: Int64, deviceID: String, storeID: String, userID: String = "", upto: OplogID,
            acknowledged: OplogID = .zero, storedBy: String = ""
        ) {
            self.channelID = channelID
            self.deviceID = deviceID
            self.storeID = storeID
            self.userID = userID
            self.upto = upto
            self.acknowledged = acknowledged
            self.storedBy = storedBy
        }
    }

    /// A batch that is resent.
    package struct Resend: Sendable, Hashable {
        package var channelID: Int64
        package var deviceID: String
        package var storeID: String
        /// Set only for global data for users.
        package var userID: String
        /// The first oplog of the batch.
        package var oplogID: OplogID
        package var repeats: Int

        package init(
            channelID: Int64, deviceID: String, storeID: String, userID: String = "", oplogID: OplogID, repeats: Int
        ) {
            self.channelID = channelID
            self.deviceID = deviceID
            self.storeID = storeID
            self.userID = userID
            self.oplogID = oplogID
            self.repeats = repeats
        }
    }

    /// Records a resend before it happens; the sync point stays (R7).
    package static func recordResend(_ resend: Resend, in store: StoreSchema = .every) -> Query<Void> {
        let sql = """
            INSERT INTO \(store.prefix)sync_point AS p (
                channel_id, device_id, store_id, user_id, oplog_id, resent_id, repeats)
            VALUES ($1, $2, $3, $6, 0, $4, $5)
            ON CONFLICT (channel_id, device_id, store_id, user_id) DO UPDATE
            SET resent_id = excluded.resent_id, repeats = excluded.repeats
            """
        let parameters: [PostgresValue] = [
            .int64(resend.channelID), .text(resend.deviceID), .text(resend.storeID), .int64(resend.oplogID.value),
            .int16(Int16(clamping: resend.repeats)), .text(resend.userID),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// Raises sync points. Lower values are ignored, values above the channel's head are clamped to the head. A user's
    /// sync point of a single-device channel moves only while the device that stored it is the owner (D8): the gateway
    /// ensures this, and this statement is the second check.
    ///
    /// The owner is looked up by its key for each row, never joined: a plan made on an empty table would read it whole.
    ///
    /// - Parameter store: the store of every channel.
    package static func advance(_ advances: [Advance], in store: StoreSchema = .every) -> Query<Void> {
        let sql = """
            INSERT INTO \(store.prefix)sync_point AS p (
                channel_id, device_id, store_id, user_id, oplog_id, acknowledged_id)
            SELECT i.channel_id, i.device_id, i.store_id, i.user_id, least(max(i.upto), c.head),
                least(max(i.acknowledged), c.head)
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[])
                AS i (channel_id, device_id, store_id, user_id, upto, acknowledged, stored_by)
            JOIN \(store.prefix)channel c ON c.channel_id = i.channel_id
            WHERE c.kind <> 0 /* user */ OR i.device_id <> '' OR i.stored_by = (
                SELECT w.device_id FROM owner w WHERE w.instance_id = c.instance_id AND w.user_id = c.target)
            GROUP BY i.channel_id, i.device_id, i.store_id, i.user_id, c.head
            ORDER BY i.channel_id, i.device_id, i.store_id, i.user_id
            ON CONFLICT (channel_id, device_id, store_id, user_id) DO UPDATE
            SET oplog_id = greatest(p.oplog_id, excluded.oplog_id),
                acknowledged_id = greatest(p.acknowledged_id, excluded.acknowledged_id)
            WHERE p.oplog_id < excluded.oplog_id OR p.acknowledged_id < excluded.acknowledged_id
            """
        let parameters: [PostgresValue] = [
            .int64Array(advances.map(\.channelID)), .textArray(advances.map(\.deviceID)),
            .textArray(advances.map(\.storeID)), .textArray(advances.map(\.userID)),
            .int64Array(advances.map(\.upto.value)), .int64Array(advances.map(\.acknowledged.value)),
            .textArray(advances.map(\.storedBy)),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }
}
