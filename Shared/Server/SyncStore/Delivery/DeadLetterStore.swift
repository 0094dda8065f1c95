import PostgreSQL
package import SyncModel

/// Dead letters, and their replays (D14).
package enum DeadLetterStore {
    /// One oplog that is a dead letter for one device.
    package struct Letter: Sendable {
        package var address: ChannelAddress
        package var oplogID: OplogID
        package var thirdMessageID: ThirdMessageID
        package var deviceID: DeviceID
        package var attempts: Int
        package var deadAt: WallTime
        /// The payload still exists.
        package var isReplayable: Bool
    }

    /// The newest dead letters of an instance that were not replayed since.
    ///
    /// - Parameter bizType: nil: of all Sync IDs.
    package static func letters(of instanceID: InstanceID, bizType: BizType?, limit: Int) -> Query<[Letter]> {
        let sql = """
            SELECT c.kind, c.target, c.biz_type, l.oplog_id, coalesce(o.third_message_id, ''), l.device_id, l.attempts,
                floor(extract(epoch FROM l.dead_at) * 1000)::bigint,
                coalesce(o.payload IS NOT NULL AND o.valid_until > now(), false)
            FROM statistics_delivery l
            JOIN channel c ON c.channel_id = l.channel_id
            JOIN sync_configuration f
                ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.kind % 2 = c.kind % 2
            LEFT JOIN oplog o ON o.channel_id = l.channel_id AND o.oplog_id = l.oplog_id
                AND o.created_at >= f.data_since
            WHERE l.dead_at IS NOT NULL AND l.confirmed_at IS NULL AND c.instance_id = $1
                AND ($2 = '' OR c.biz_type = $2) AND NOT \(isReplayed(in: .every))
            ORDER BY l.dead_at DESC LIMIT $3
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(bizType?.text ?? ""), .int32(Int32(clamping: limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> Letter? in
                guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
                return try Letter(
                    address: ChannelAddress(
                        target: TargetAddress(instanceID: instanceID, kind: kind, target: columns.next()),
                        bizType: columns.next()),
                    oplogID: columns.next(), thirdMessageID: columns.next(), deviceID: columns.next(),
                    attempts: columns.next(), deadAt: columns.next(), isReplayable: columns.next())
            }
        }
    }

    private static func isReplayed(in store: StoreSchema) -> String {
        """
        EXISTS (
            SELECT FROM \(store.prefix)reread r
            WHERE r.channel_id = l.channel_id AND r.oplog_id = l.oplog_id AND r.device_id = l.device_id
                AND r.asked_at > l.dead_at)
        """
    }

    /// A replay, and the gateway that has the device's session now.
    package struct Replay: Sendable {
        package var rereadID: Int64
        package var gatewayID: String?
    }

    /// Requests a re-read of one dead letter; nil: there is no such dead letter, or its payload is gone. A request of
    /// an operator is recorded in the audit log.
    package static func replay(
        channelID: Int64, oplogID: OplogID, deviceID: DeviceID, by actor: OperationActor,
        in store: StoreSchema = .every
    ) -> Query<Replay?> {
        let sql = """
            WITH asked AS (
                INSERT INTO \(store.prefix)reread (channel_id, device_id, user_id, oplog_id, reason, actor)
                SELECT l.channel_id, l.device_id, l.dead_user, l.oplog_id, 'dead letter', $6
                FROM statistics_delivery l
                JOIN \(store.prefix)oplog o ON o.channel_id = l.channel_id AND o.oplog_id = l.oplog_id
                WHERE l.channel_id = $1 AND l.oplog_id = $2 AND l.device_id = $3 AND l.dead_at IS NOT NULL
                    AND l.confirmed_at IS NULL AND o.payload IS NOT NULL AND o.valid_until > now()
                    AND NOT \(isReplayed(in: store))
                RETURNING reread_id)
            SELECT a.reread_id, s.gateway_id, CASE WHEN $5 THEN record_operation(
                $4, \(OperationAction.replay.rawValue)::smallint, c.instance_id, c.biz_type, NULL,
                jsonb_build_object('target', c.target, 'oplogId', $2, 'deviceId', $3)) END
            FROM asked a
            JOIN \(store.prefix)channel c ON c.channel_id = $1
            LEFT JOIN device_session s ON s.instance_id = c.instance_id AND s.device_id = $3
            """
        let parameters: [PostgresValue] = [
            .int64(channelID), .int64(oplogID.value), .text(deviceID.text), actor.value, .bool(actor.isPerson),
            .text(actor.name),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                let replay = try Replay(rereadID: columns.next(), gatewayID: columns.next())
                columns.skipRest()
                return replay
            }
        }
    }
}
