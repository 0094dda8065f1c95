import PostgreSQL
package import SyncModel

/// Connected devices for operators (C1, C7).
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
        /// When the connection was registered first, or again under a new lease of its gateway.
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

    private static func row(_ columns: inout PostgresColumns) throws(PostgresError) -> Row {
        let deviceID = try columns.next(DeviceID.self)
        return try Row(
            deviceID: deviceID, userID: columns.nextNonEmpty().map(UserID.init), gatewayID: columns.next(),
            traits: DeviceTraits(
                operatingSystem: OperatingSystem(rawValue: columns.next()), appVersion: columns.next(),
                slot: DeviceSlot(of: deviceID)),
            isForeground: columns.next(), isOwner: columns.next(), hasValidVerdict: columns.next(),
            since: columns.next())
    }

    /// Live sessions of an instance above a device id, in the order of device ids.
    ///
    /// - Parameter userID: nil: sessions of all users and without a user.
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
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(row) }
    }

    /// The live session of one device; nil: it is not connected.
    package static func device(_ deviceID: DeviceID, of instanceID: InstanceID) -> Query<Row?> {
        let sql = "\(select) WHERE s.instance_id = $1 AND s.device_id = $2"
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(deviceID.text)])) {
            rows throws(PostgresError) in
            try rows.first(row)
        }
    }

    /// A channel of a device, with its head and sync point.
    package struct Channel: Sendable, Hashable {
        package var kind: ChannelKind
        package var bizType: BizType
        package var head: OplogID
        package var syncPoint: OplogID
    }

    /// The largest number of channels in one answer.
    package static let channelsMax = 200

    /// The channels that a device receives, the one with the newest oplog first. For a device that is not connected:
    /// those that need no user and that it has a sync point in.
    ///
    /// The sync point is the highest over all stores of the device; where a user or device has one sync point, it is
    /// that one (W7).
    ///
    /// - Parameter userID: the bound user; nil: no user is bound, or the device is not connected.
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
                WHERE q.channel_id = c.channel_id AND (c.kind <> 2 /* globalUser */ OR q.user_id = $3)
                    AND (q.device_id = $2 OR c.kind = 1 /* device */
                        OR (c.kind = 0 /* user */ AND NOT f.is_multi_device))
            ) p ON true
            LEFT JOIN LATERAL (
                SELECT o.created_at FROM oplog o WHERE o.channel_id = c.channel_id AND o.oplog_id <= c.head
                ORDER BY o.oplog_id DESC LIMIT 1
            ) n ON true
            WHERE (c.kind IN (1 /* device */, 3 /* globalDevice */) OR $3 <> '') AND ($4 OR p.oplog_id IS NOT NULL)
            ORDER BY n.created_at DESC NULLS LAST, c.kind, c.biz_type LIMIT \(channelsMax)
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .text(userID?.text ?? ""), .bool(isConnected),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> Channel? in
                guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
                return try Channel(
                    kind: kind, bizType: columns.next(), head: columns.next(), syncPoint: columns.next())
            }
        }
    }

    /// The gateway of a connected device; nil: it is not connected. An operator's request is recorded in the audit log.
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
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                let gatewayID = try columns.next(String.self)
                columns.skipRest()
                return gatewayID
            }
        }
    }
}
