import PostgreSQL
package import SyncModel

/// Finds an oplog by the backend's name for it, and reads its delivery record by device (H7).
package enum TraceStore {
    /// An oplog as a backend names it: by its `thirdMsgId` or by its oplog id.
    package struct Name: Sendable, Hashable {
        package enum Key: Sendable, Hashable {
            case thirdMessageID(ThirdMessageID)
            case oplogID(OplogID)
        }

        package var instanceID: InstanceID
        package var bizType: BizType
        /// A user or device id; empty for a global push. Where the configuration is global, it is used only when no
        /// global push has the key: then the push was made under a former scope (C4).
        package var target: String
        package var key: Key

        package init(instanceID: InstanceID, bizType: BizType, target: String, key: Key) {
            self.instanceID = instanceID
            self.bizType = bizType
            self.target = target
            self.key = key
        }
    }

    /// An oplog that was found, without its payload.
    package struct Found: Sendable {
        package var channelID: Int64
        package var target: TargetAddress
        package var oplog: Oplog
        package var recalledAt: WallTime?
        /// False: it belongs to a deleted configuration.
        package var isOfConfiguration: Bool
    }

    /// The newest oplog with that name; nil: there is none.
    package static func find(_ name: Name) -> Query<Found?> {
        let condition: String
        var parameters: [PostgresValue] = [.text(name.instanceID.text), .text(name.target), .text(name.bizType.text)]
        switch name.key {
        case .thirdMessageID(let id):
            condition = "o.third_message_hash = $4 AND o.third_message_id = $5"
            parameters += [.int64(OplogStore.stableHash(id.text)), .text(id.text)]
        case .oplogID(let id):
            condition = "o.oplog_id = $4"
            parameters.append(.int64(id.value))
        }
        let sql = """
            SELECT c.kind, c.channel_id, c.target, o.oplog_id, o.third_message_id, o.is_binary,
                \(OplogStore.targetingColumns),
                floor(extract(epoch FROM o.valid_until) * 1000)::bigint,
                floor(extract(epoch FROM o.created_at) * 1000)::bigint,
                o.payload IS NOT NULL OR o.recalled_at IS NOT NULL,
                floor(extract(epoch FROM o.recalled_at) * 1000)::bigint,
                o.created_at >= coalesce(f.data_since, 'infinity')
            FROM (VALUES (0::smallint, $2::text), (1::smallint, $2), (2::smallint, ''), (3::smallint, ''))
                AS t (kind, target)
            JOIN channel c ON c.instance_id = $1 AND c.kind = t.kind AND c.target = t.target AND c.biz_type = $3
            JOIN oplog o ON o.channel_id = c.channel_id AND \(condition)
            LEFT JOIN sync_configuration f
                ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.kind % 2 = c.kind % 2
            WHERE o.recalls IS NULL AND (c.kind < 2 /* appointed */ OR $2 = '' OR f.kind > 1 /* global */)
            ORDER BY coalesce(f.kind = c.kind, false) DESC, o.oplog_id DESC LIMIT 1
            """
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> Found? in
                guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
                return try Found(
                    channelID: columns.next(),
                    target: TargetAddress(instanceID: name.instanceID, kind: kind, target: columns.next()),
                    oplog: Oplog(
                        id: columns.next(), thirdMessageID: columns.next(), payload: [], isBinary: columns.next(),
                        targeting: OplogStore.targeting(&columns), validUntil: columns.next(),
                        createdAt: columns.next(), isPersistent: columns.next()),
                    recalledAt: columns.next(), isOfConfiguration: columns.next())
            }.first
        }
    }

    /// The payload of an oplog; nil: its validity has ended, or it was recalled.
    package static func payload(channelID: Int64, oplogID: OplogID) -> Query<[UInt8]?> {
        let sql = """
            SELECT payload FROM oplog
            WHERE channel_id = $1 AND oplog_id = $2 AND payload IS NOT NULL AND valid_until > now()
            """
        return Query(PostgresStatement(sql, [.int64(channelID), .int64(oplogID.value)])) { rows throws(PostgresError) in
            try rows.first([UInt8].self)
        }
    }

    /// A device that an oplog is, was, or would be for.
    package struct Receiver: Sendable {
        package var deviceID: DeviceID
        package var syncPoint: OplogID
        package var presence: DeliveryTrace.Presence?
        package var record: DeliveryTrace.Record
    }

    /// The largest number of devices in one answer.
    package static let receiversMax = 200

    /// The devices that are known for a target: the connected ones, those with a position or a record in the channel,
    /// the owner, and the requested device.
    ///
    /// - Parameters:
    ///   - channel: the channel of the oplog, which need not exist.
    ///   - channelID: 0 when the channel does not exist yet.
    ///   - oplogID: the oplog whose record is read; an id above the head reads only the devices.
    ///   - device: only this device; nil: all devices, but none of a global channel.
    package static func receivers(
        of channel: ChannelAddress, channelID: Int64, oplogID: OplogID, device: DeviceID?
    ) -> Query<[Receiver]> {
        let sql = """
            SELECT d.device_id, coalesce(p.oplog_id, 0), s.device_id IS NOT NULL, s.operating_system, s.app_version,
                s.verdict_until > clock_timestamp(), coalesce(w.device_id = d.device_id, false),
                coalesce($8 = ANY (s.suspended), false), floor(extract(epoch FROM l.handed_out_at) * 1000)::bigint,
                coalesce(l.attempts, 0), l.skip_reason,
                floor(extract(epoch FROM l.skipped_at) * 1000)::bigint,
                floor(extract(epoch FROM l.confirmed_at) * 1000)::bigint,
                CASE WHEN NOT EXISTS (
                    SELECT FROM reread r WHERE r.channel_id = $4 AND r.oplog_id = $5 AND r.device_id = d.device_id
                        AND r.asked_at > l.dead_at)
                    THEN floor(extract(epoch FROM l.dead_at) * 1000)::bigint END,
                floor(extract(epoch FROM x.discarded_at) * 1000)::bigint
            FROM (
                SELECT device_id FROM device_session
                WHERE $2 = 0 AND instance_id = $1 AND user_id = $3 AND user_id <> ''
                UNION SELECT device_id FROM sync_point WHERE $2 < 2 AND channel_id = $4 AND device_id <> ''
                UNION SELECT device_id FROM statistics_delivery WHERE $2 < 2 AND channel_id = $4 AND oplog_id = $5
                UNION SELECT device_id FROM owner WHERE $2 = 0 AND instance_id = $1 AND user_id = $3
                UNION SELECT $3 WHERE $2 = 1
                UNION SELECT $6 WHERE $6 <> ''
            ) d
            LEFT JOIN LATERAL (
                SELECT s.* FROM device_session s
                JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
                WHERE s.instance_id = $1 AND s.device_id = d.device_id
                    AND CASE $2 WHEN 0 THEN s.user_id = $3 WHEN 2 THEN s.user_id <> '' ELSE true END
            ) s ON true
            LEFT JOIN owner w ON $2 = 0 AND w.instance_id = $1 AND w.user_id = $3
            LEFT JOIN LATERAL (
                SELECT max(q.oplog_id) AS oplog_id FROM sync_point q
                WHERE q.channel_id = $4 AND (q.device_id = d.device_id
                    OR (q.device_id = '' AND ($2 = 1 OR w.device_id = d.device_id)))
            ) p ON true
            LEFT JOIN statistics_delivery l
                ON l.channel_id = $4 AND l.oplog_id = $5 AND l.device_id = d.device_id
            LEFT JOIN LATERAL (
                SELECT y.discarded_at FROM statistics_discarded y
                WHERE y.channel_id = $4 AND y.device_id = d.device_id AND y.upto >= $5 AND y.after < $5
                ORDER BY y.upto LIMIT 1
            ) x ON true
            WHERE $6 = '' OR d.device_id = $6
            ORDER BY d.device_id LIMIT $7
            """
        let parameters: [PostgresValue] = [
            .text(channel.target.instanceID.text), .int16(channel.target.kind.rawValue),
            .text(channel.target.target), .int64(channelID), .int64(oplogID.value), .text(device?.text ?? ""),
            .int32(Int32(receiversMax)), .text(channel.bizType.text),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(receiver) }
    }

    private static func receiver(_ columns: inout PostgresColumns) throws(PostgresError) -> Receiver {
        let deviceID = try columns.next(DeviceID.self)
        let syncPoint = try columns.next(OplogID.self)
        let isConnected = try columns.next(Bool.self)
        // The columns of the session are null when the device is not connected.
        let presence = try DeliveryTrace.Presence(
            traits: DeviceTraits(
                operatingSystem: columns.next(Int16?.self).flatMap(OperatingSystem.init),
                appVersion: columns.next(String?.self) ?? "", slot: DeviceSlot(of: deviceID)),
            hasValidVerdict: columns.next(Bool?.self) ?? false, isOwner: columns.next(), isSuspended: columns.next())
        var record = DeliveryTrace.Record()
        record.handedOutAt = try columns.next()
        record.attempts = try columns.next()
        record.skipReason = try columns.next(Int16?.self).flatMap(SkipReason.init)
        record.skippedAt = try columns.next()
        record.confirmedAt = try columns.next()
        record.deadAt = try columns.next()
        record.discardedAt = try columns.next()
        return Receiver(
            deviceID: deviceID, syncPoint: syncPoint, presence: isConnected ? presence : nil, record: record)
    }

    /// Connected devices of a global push's kind with the same traits, verdict and suspension.
    package struct DeviceGroup: Sendable {
        package var presence: DeliveryTrace.Presence
        package var devices: Int64
    }

    /// The connected devices that a global push is for, grouped.
    ///
    /// - Parameter share: devices inside and outside of it are in different groups; the slot of a group is one from its
    ///   side.
    package static func deviceGroups(of channel: ChannelAddress, share: DeviceShare) -> Query<[DeviceGroup]> {
        let sql = """
            SELECT s.operating_system, s.app_version, (s.slot - $4 + \(DeviceSlot.count)) % \(DeviceSlot.count) < $5,
                s.verdict_until > clock_timestamp(), $3 = ANY (s.suspended), count(*)
            FROM device_session s
            JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
            WHERE s.instance_id = $1 AND (s.user_id <> '' OR NOT $2)
            GROUP BY 1, 2, 3, 4, 5
            """
        let parameters: [PostgresValue] = [
            .text(channel.target.instanceID.text), .bool(channel.target.kind.needsUser), .text(channel.bizType.text),
            .int32(Int32(share.start)), .int32(Int32(share.size)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try DeviceGroup(
                    presence: DeliveryTrace.Presence(
                        traits: DeviceTraits(
                            operatingSystem: OperatingSystem(rawValue: columns.next()), appVersion: columns.next(),
                            slot: DeviceSlot(
                                number: columns.next(Bool.self) ? share.start : share.start + share.size)),
                        hasValidVerdict: columns.next(), isOwner: false, isSuspended: columns.next()),
                    devices: columns.next())
            }
        }
    }

    /// The number of devices of an oplog in each state that the record alone determines.
    package static func tally(channelID: Int64, oplogID: OplogID) -> Query<[DeliveryState: Int64]> {
        let sql = """
            SELECT CASE WHEN confirmed_at IS NOT NULL THEN \(DeliveryState.delivered.rawValue)
                WHEN dead_at IS NOT NULL THEN \(DeliveryState.dead.rawValue)
                WHEN handed_out_at IS NOT NULL THEN \(DeliveryState.handedOut.rawValue)
                WHEN skip_reason = \(SkipReason.operatingSystem.rawValue)
                    THEN \(DeliveryState.filteredBySystem.rawValue)
                WHEN skip_reason = \(SkipReason.version.rawValue) THEN \(DeliveryState.filteredByVersion.rawValue)
                ELSE \(DeliveryState.expired.rawValue) END, count(*)
            FROM statistics_delivery WHERE channel_id = $1 AND oplog_id = $2 GROUP BY 1
            """
        return Query(PostgresStatement(sql, [.int64(channelID), .int64(oplogID.value)])) { rows throws(PostgresError) in
            var tally: [DeliveryState: Int64] = [:]
            try rows.forEachRow { columns throws(PostgresError) in
                let state = DeliveryState(rawValue: try columns.next())
                let devices = try columns.next(Int64.self)
                if let state { tally[state] = devices }
            }
            return tally
        }
    }
}
