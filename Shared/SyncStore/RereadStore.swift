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
            WITH waiting AS MATERIALIZED (SELECT * FROM reread w WHERE w.device_id = $2 AND w.done_at IS NULL)
            SELECT r.reread_id, r.channel_id, r.reason = 'parameter', \(OplogStore.columns)
            -- Materialized, and limits: from the few that wait to what belongs to them, one look for each, also where a
            -- plan is made while nothing has ever waited and the tables are large.
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
                AND CASE c.kind WHEN 0 THEN c.target = $3 WHEN 2 THEN r.user_id = $3 ELSE true END
                AND o.payload IS NOT NULL AND o.valid_until > now() AND l.is_confirmed IS NULL
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
