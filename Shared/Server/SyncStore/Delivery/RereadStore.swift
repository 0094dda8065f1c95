import PostgreSQL
package import SyncModel

/// Oplogs that single devices receive again, below their sync points (D3).
package enum RereadStore {
    /// One oplog for one device.
    package struct Reread: Sendable {
        package var id: Int64
        package var channelID: Int64
        package var oplog: Oplog
        /// A changed parameter lets it through.
        package var isNewlyMatching = false
    }

    /// Re-reads in one answer; the next answer has more.
    private static let limit: Int32 = 16

    /// The open re-reads of a device and its bound user.
    package static func waiting(
        instanceID: InstanceID, deviceID: DeviceID, userID: UserID?
    ) -> Query<[Reread]> {
        let sql = """
            WITH waiting AS MATERIALIZED (SELECT * FROM reread w WHERE w.device_id = $2 AND w.done_at IS NULL)
            SELECT r.reread_id, r.channel_id, \(OplogStore.columns), r.reason = 'parameter'
            -- Materialized, and with limits: one lookup for each waiting row, also with a plan that was made while no
            -- row waited and the tables were large.
            FROM waiting r
            JOIN channel c ON c.channel_id = r.channel_id
            JOIN sync_configuration f
                ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.kind % 2 = c.kind % 2
            CROSS JOIN LATERAL (
                SELECT * FROM oplog p WHERE p.channel_id = r.channel_id AND p.oplog_id = r.oplog_id LIMIT 1
            ) o
            LEFT JOIN LATERAL (
                SELECT true AS is_confirmed FROM statistics_delivery d
                WHERE d.channel_id = r.channel_id AND d.oplog_id = r.oplog_id AND d.device_id = r.device_id
                    AND d.confirmed_at IS NOT NULL LIMIT 1
            ) l ON true
            WHERE c.instance_id = $1 AND o.created_at >= f.data_since
                AND CASE c.kind WHEN 0 /* user */ THEN c.target = $3
                    WHEN 2 /* globalUser */ THEN r.user_id = $3 ELSE true END
                AND o.payload IS NOT NULL AND o.valid_until > now() AND l.is_confirmed IS NULL
            ORDER BY r.reread_id LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .text(userID?.text ?? ""), .int32(limit),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Reread(
                    id: columns.next(), channelID: columns.next(), oplog: OplogStore.oplog(&columns),
                    isNewlyMatching: columns.next())
            }
        }
    }

    /// Records that the device has stored the re-read's oplog.
    package static func finish(_ id: Int64, in store: StoreSchema = .every) -> Query<Void> {
        let sql = """
            UPDATE \(store.prefix)reread SET done_at = clock_timestamp() WHERE reread_id = $1 AND done_at IS NULL
            """
        return Query(PostgresStatement(sql, [.int64(id)])) { _ in }
    }
}
