import PostgreSQL
package import SyncModel

/// What single devices are to be given again, below their sync points (spec D3).
package enum RereadStore {
    /// One oplog for one device.
    package struct Reread: Sendable {
        package var id: Int64
        package var channelID: Int64
        package var oplog: Oplog
        /// A changed parameter lets it through.
        package var isNewlyMatching = false
    }

    /// Re-reads told in one answer; more come with the next.
    private static let limit: Int32 = 16

    /// What waits for a device and the user bound on it.
    package static func waiting(
        instanceID: InstanceID, deviceID: DeviceID, userID: UserID?
    ) -> Query<[Reread]> {
        let sql = """
            SELECT r.reread_id, r.channel_id, r.reason = 'parameter', \(OplogStore.columns)
            FROM reread r
            JOIN channel c ON c.channel_id = r.channel_id
            JOIN oplog o ON o.channel_id = r.channel_id AND o.oplog_id = r.oplog_id
            JOIN sync_configuration f
                ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.kind = c.kind
                AND o.created_at >= f.data_since
            WHERE r.device_id = $2 AND r.done_at IS NULL AND c.instance_id = $1
                AND CASE c.kind WHEN 0 THEN c.target = $3 WHEN 2 THEN r.user_id = $3 ELSE true END
                AND o.payload IS NOT NULL AND o.valid_until > now()
                AND NOT EXISTS (
                    SELECT FROM statistics_delivery l WHERE l.channel_id = r.channel_id AND l.oplog_id = r.oplog_id
                        AND l.device_id = r.device_id AND l.confirmed_at IS NOT NULL)
            ORDER BY r.reread_id LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .text(userID?.text ?? ""), .int32(limit),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.map {
                Reread(
                    id: $0.int64(0), channelID: $0.int64(1), oplog: OplogStore.oplog(of: $0, from: 3),
                    isNewlyMatching: $0.bool(2))
            }
        }
    }

    /// The device has it on its disk.
    package static func finish(_ id: Int64) -> Query<Void> {
        let sql = "UPDATE reread SET done_at = clock_timestamp() WHERE reread_id = $1 AND done_at IS NULL"
        return Query(PostgresStatement(sql, [.int64(id)])) { _ in }
    }
}
