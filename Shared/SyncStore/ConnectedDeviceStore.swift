import PostgreSQL
package import SyncModel

/// Devices that are connected, as operators see them (spec C1, C7).
package enum ConnectedDeviceStore {
    /// A live session.
    package struct Row: Sendable {
        package var deviceID: DeviceID
        package var userID: UserID?
        package var gatewayID: String
        package var traits: DeviceTraits
        package var isForeground: Bool
        package var isOwner: Bool
        package var hasValidVerdict: Bool
        /// When the connection was registered, or announced under a new lease of its gateway.
        package var since: WallTime
    }

    private static let select = """
        SELECT s.device_id, s.user_id, s.gateway_id, s.operating_system, s.app_version, s.is_foreground,
            coalesce(w.device_id = s.device_id, false), s.verdict_until > clock_timestamp(),
            floor(extract(epoch FROM s.registered_at) * 1000)::bigint
        FROM device_session s
        JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
        LEFT JOIN owner w ON w.instance_id = s.instance_id AND w.user_id = s.user_id AND s.user_id <> ''
        """

    private static func row(_ row: PostgresRow) -> Row {
        Row(
            deviceID: DeviceID(row.text(0)), userID: row.text(1).isEmpty ? nil : UserID(row.text(1)),
            gatewayID: row.text(2),
            traits: DeviceTraits(
                operatingSystem: OperatingSystem(rawValue: row.int16(3)), appVersion: row.text(4),
                slot: DeviceSlot(of: DeviceID(row.text(0)))),
            isForeground: row.bool(5), isOwner: row.bool(6), hasValidVerdict: row.bool(7),
            since: WallTime(milliseconds: row.int64(8)))
    }

    /// Live sessions of an instance by device id, those above one.
    ///
    /// - Parameter userID: nil: of all users and of none.
    package static func devices(
        of instanceID: InstanceID, userID: UserID?, after deviceID: DeviceID, limit: Int
    ) -> Query<[Row]> {
        let sql = """
            \(select)
            WHERE s.instance_id = $1 AND s.device_id > $3 AND ($2 = '' OR s.user_id = $2)
            ORDER BY s.device_id LIMIT $4
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(userID?.text ?? ""), .text(deviceID.text), .int32(Int32(clamping: limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map(row) }
    }

    /// The live session of one device; nil: it is not connected.
    package static func device(_ deviceID: DeviceID, of instanceID: InstanceID) -> Query<Row?> {
        let sql = "\(select) WHERE s.instance_id = $1 AND s.device_id = $2"
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(deviceID.text)])) { rows in
            rows.first.map(row)
        }
    }

    /// A channel that a device receives, and how far.
    package struct Channel: Sendable, Hashable {
        package var kind: ChannelKind
        package var bizType: BizType
        package var head: OplogID
        package var syncPoint: OplogID
    }

    /// Channels of one answer at the most.
    package static let channelsMax = 200

    /// The channels that a device receives, that with the newest oplog first. Of a device that is not connected those
    /// that need no user and that it has read from.
    ///
    /// The sync point is that of the device's receiver, over all of its stores: where a user or device has one sync
    /// point, the highest that any device recorded (spec §1, Receiver).
    ///
    /// - Parameter userID: who is bound; nil: nobody, or it is not connected.
    package static func channels(
        of deviceID: DeviceID, _ instanceID: InstanceID, userID: UserID?, isConnected: Bool
    ) -> Query<[Channel]> {
        let sql = """
            SELECT c.kind, c.biz_type, c.head, coalesce(p.oplog_id, 0)
            FROM (VALUES (0::smallint, $3::text), (1::smallint, $2::text), (2::smallint, ''), (3::smallint, ''))
                AS t (kind, target)
            JOIN channel c ON c.instance_id = $1 AND c.kind = t.kind AND c.target = t.target
            JOIN sync_configuration f
                ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.kind % 2 = c.kind % 2
            LEFT JOIN LATERAL (
                SELECT max(q.oplog_id) AS oplog_id FROM sync_point q
                WHERE q.channel_id = c.channel_id AND (c.kind <> 2 OR q.user_id = $3)
                    AND (q.device_id = $2 OR c.kind = 1 OR (c.kind = 0 AND NOT f.is_multi_device))
            ) p ON true
            LEFT JOIN LATERAL (
                SELECT o.created_at FROM oplog o WHERE o.channel_id = c.channel_id AND o.oplog_id <= c.head
                ORDER BY o.oplog_id DESC LIMIT 1
            ) n ON true
            WHERE (c.kind IN (1, 3) OR $3 <> '') AND ($4 OR p.oplog_id IS NOT NULL)
            ORDER BY n.created_at DESC NULLS LAST, c.kind, c.biz_type LIMIT \(channelsMax)
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .text(userID?.text ?? ""), .bool(isConnected),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.compactMap { row in
                ChannelKind(rawValue: row.int16(0)).map {
                    Channel(
                        kind: $0, bizType: BizType(row.text(1)), head: OplogID(row.int64(2)),
                        syncPoint: OplogID(row.int64(3)))
                }
            }
        }
    }

    /// The gateway that holds a device now; nil: it is not connected. A person's asking is the end of the connection,
    /// and recorded.
    package static func disconnect(
        _ deviceID: DeviceID, of instanceID: InstanceID, by actor: OperationActor
    ) -> Query<String?> {
        let sql = """
            SELECT s.gateway_id, CASE WHEN $4 THEN record_operation(
                $3, \(OperationAction.disconnectDevice.rawValue)::smallint, $1, $2, NULL, NULL) END
            FROM device_session s
            JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
            WHERE s.instance_id = $1 AND s.device_id = $2
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), actor.value, .bool(actor.isPerson),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in rows.first?.text(0) }
    }
}
