import PostgreSQL
package import SyncModel

/// How far receivers have stored their channels; a sync point only rises (spec §1).
package enum SyncPointStore {
    /// One receiver's progress in one channel.
    package struct Advance: Sendable, Hashable {
        package var channelID: Int64
        /// Empty, like the store, where the channel has one sync point for its user or device.
        package var deviceID: String
        package var storeID: String
        package var upto: OplogID

        package init(channelID: Int64, deviceID: String, storeID: String, upto: OplogID) {
            self.channelID = channelID
            self.deviceID = deviceID
            self.storeID = storeID
            self.upto = upto
        }
    }

    /// A batch that goes out again.
    package struct Resend: Sendable, Hashable {
        package var channelID: Int64
        package var deviceID: String
        package var storeID: String
        /// The batch begins with it.
        package var oplogID: OplogID
        package var repeats: Int

        package init(channelID: Int64, deviceID: String, storeID: String, oplogID: OplogID, repeats: Int) {
            self.channelID = channelID
            self.deviceID = deviceID
            self.storeID = storeID
            self.oplogID = oplogID
            self.repeats = repeats
        }
    }

    /// Notes that a batch goes out again, before it does; the sync point stays (reliability R7).
    package static func noteResend(_ resend: Resend) -> Query<Void> {
        let sql = """
            INSERT INTO sync_point AS p (channel_id, device_id, store_id, oplog_id, resent_id, repeats)
            VALUES ($1, $2, $3, 0, $4, $5)
            ON CONFLICT (channel_id, device_id, store_id) DO UPDATE
            SET resent_id = excluded.resent_id, repeats = excluded.repeats
            """
        let parameters: [PostgresValue] = [
            .int64(resend.channelID), .text(resend.deviceID), .text(resend.storeID), .int64(resend.oplogID.value),
            .int16(Int16(clamping: resend.repeats)),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// Raises sync points; what is not above the point on record, or above the channel's head, changes nothing wrong:
    /// the first is dropped, the second clamped.
    package static func advance(_ advances: [Advance]) -> Query<Void> {
        let sql = """
            INSERT INTO sync_point AS p (channel_id, device_id, store_id, oplog_id)
            SELECT i.channel_id, i.device_id, i.store_id, least(max(i.upto), c.head)
            FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS i (channel_id, device_id, store_id, upto)
            JOIN channel c ON c.channel_id = i.channel_id
            GROUP BY i.channel_id, i.device_id, i.store_id, c.head
            ORDER BY i.channel_id, i.device_id, i.store_id
            ON CONFLICT (channel_id, device_id, store_id) DO UPDATE SET oplog_id = excluded.oplog_id
            WHERE p.oplog_id < excluded.oplog_id
            """
        let parameters: [PostgresValue] = [
            .int64Array(advances.map(\.channelID)), .textArray(advances.map(\.deviceID)),
            .textArray(advances.map(\.storeID)), .int64Array(advances.map(\.upto.value)),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }
}
