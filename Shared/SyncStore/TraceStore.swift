import PostgreSQL
package import SyncModel

/// Finds an oplog by its caller's name and reads what is on record of it, device by device (spec H7).
package enum TraceStore {
    /// An oplog as a backend names it: by its own id, or by ours.
    package struct Name: Sendable, Hashable {
        package enum Key: Sendable, Hashable {
            case thirdMessageID(ThirdMessageID)
            case oplogID(OplogID)
        }

        package var instanceID: InstanceID
        package var bizType: BizType
        /// A user or device id; empty for a global push. Where the configuration is global it is looked at only when no
        /// global push has the key: then the push was made under a former scope (spec C4).
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
        /// False: it belongs to a configuration that was deleted since.
        package var isOfConfiguration: Bool
    }

    /// The newest oplog of that name.
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
            SELECT c.channel_id, c.kind, c.target, o.oplog_id, o.third_message_id, \(OplogStore.targetingColumns),
                floor(extract(epoch FROM o.valid_until) * 1000)::bigint,
                floor(extract(epoch FROM o.created_at) * 1000)::bigint,
                floor(extract(epoch FROM o.recalled_at) * 1000)::bigint,
                o.payload IS NOT NULL OR o.recalled_at IS NOT NULL, o.created_at >= coalesce(f.data_since, 'infinity'),
                o.is_binary
            FROM (VALUES (0::smallint, $2::text), (1::smallint, $2), (2::smallint, ''), (3::smallint, ''))
                AS t (kind, target)
            JOIN channel c ON c.instance_id = $1 AND c.kind = t.kind AND c.target = t.target AND c.biz_type = $3
            JOIN oplog o ON o.channel_id = c.channel_id AND \(condition)
            LEFT JOIN sync_configuration f
                ON f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.kind % 2 = c.kind % 2
            WHERE o.recalls IS NULL AND (c.kind < 2 OR $2 = '' OR f.kind > 1)
            ORDER BY coalesce(f.kind = c.kind, false) DESC, o.oplog_id DESC LIMIT 1
            """
        return Query(PostgresStatement(sql, parameters)) { rows in
            guard let row = rows.first, let kind = ChannelKind(rawValue: row.int16(1)) else { return nil }
            return Found(
                channelID: row.int64(0),
                target: TargetAddress(instanceID: name.instanceID, kind: kind, target: row.text(2)),
                oplog: Oplog(
                    id: OplogID(row.int64(3)), thirdMessageID: ThirdMessageID(row.text(4)), payload: [],
                    isBinary: row.bool(15), targeting: OplogStore.targeting(of: row, from: 5),
                    validUntil: WallTime(milliseconds: row.int64(10)), createdAt: WallTime(milliseconds: row.int64(11)),
                    isPersistent: row.bool(13)),
                recalledAt: time(row, 12), isOfConfiguration: row.bool(14))
        }
    }

    /// The payload of an oplog that was found, while it lives: until its validity ends or it is recalled.
    package static func payload(channelID: Int64, oplogID: OplogID) -> Query<[UInt8]?> {
        let sql = """
            SELECT payload FROM oplog
            WHERE channel_id = $1 AND oplog_id = $2 AND payload IS NOT NULL AND valid_until > now()
            """
        return Query(PostgresStatement(sql, [.int64(channelID), .int64(oplogID.value)])) { rows in
            rows.first?.bytes(0)
        }
    }

    /// A device that an oplog is, was, or would be for.
    package struct Receiver: Sendable {
        package var deviceID: DeviceID
        package var syncPoint: OplogID
        package var presence: DeliveryTrace.Presence?
        package var record: DeliveryTrace.Record
    }

    /// Devices of one answer at the most.
    package static let receiversMax = 200

    /// The devices that are known for a target: those connected, those with a position or a record in the channel, the
    /// owner, and the one that is asked for.
    ///
    /// - Parameters:
    ///   - channel: where the oplog is, or would be.
    ///   - channelID: 0 when the channel does not exist yet.
    ///   - oplogID: of the oplog whose record is read; above every id to see only who is there.
    ///   - device: only this one; nil: all, but of global channels none.
    package static func receivers(
        of channel: ChannelAddress, channelID: Int64, oplogID: OplogID, device: DeviceID?
    ) -> Query<[Receiver]> {
        let sql = """
            SELECT d.device_id, coalesce(p.oplog_id, 0), s.device_id IS NOT NULL, s.operating_system, s.app_version,
                s.verdict_until > clock_timestamp(), coalesce(w.device_id = d.device_id, false),
                floor(extract(epoch FROM l.handed_out_at) * 1000)::bigint, coalesce(l.attempts, 0), l.skip_reason,
                floor(extract(epoch FROM l.skipped_at) * 1000)::bigint,
                floor(extract(epoch FROM l.confirmed_at) * 1000)::bigint,
                CASE WHEN NOT EXISTS (
                    SELECT FROM reread r WHERE r.channel_id = $4 AND r.oplog_id = $5 AND r.device_id = d.device_id
                        AND r.asked_at > l.dead_at)
                    THEN floor(extract(epoch FROM l.dead_at) * 1000)::bigint END,
                floor(extract(epoch FROM x.discarded_at) * 1000)::bigint, coalesce($8 = ANY (s.suspended), false)
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
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map(receiver) }
    }

    private static func receiver(_ row: PostgresRow) -> Receiver {
        var record = DeliveryTrace.Record()
        record.handedOutAt = time(row, 7)
        record.attempts = Int(row.int32(8))
        record.skipReason = row.isNull(9) ? nil : SkipReason(rawValue: row.int16(9))
        record.skippedAt = time(row, 10)
        record.confirmedAt = time(row, 11)
        record.deadAt = time(row, 12)
        record.discardedAt = time(row, 13)
        let presence = DeliveryTrace.Presence(
            traits: DeviceTraits(
                operatingSystem: row.isNull(3) ? nil : OperatingSystem(rawValue: row.int16(3)),
                appVersion: row.isNull(4) ? "" : row.text(4), slot: DeviceSlot(of: DeviceID(row.text(0)))),
            hasValidVerdict: !row.isNull(5) && row.bool(5),
            isOwner: row.bool(6), isSuspended: row.bool(14))
        return Receiver(
            deviceID: DeviceID(row.text(0)), syncPoint: OplogID(row.int64(1)), presence: row.bool(2) ? presence : nil,
            record: record)
    }

    /// How many connected devices of a global push's kind have the same traits, verdict and whether they take it.
    package struct Crowd: Sendable {
        package var presence: DeliveryTrace.Presence
        package var devices: Int64
    }

    /// Everybody that a global push is for and who is connected, grouped.
    ///
    /// - Parameter share: devices within it and those outside are told apart; each crowd has some slot of its side.
    package static func crowds(of channel: ChannelAddress, share: DeviceShare) -> Query<[Crowd]> {
        let sql = """
            SELECT s.operating_system, s.app_version, s.verdict_until > clock_timestamp(), $3 = ANY (s.suspended),
                (s.slot - $4 + \(DeviceSlot.count)) % \(DeviceSlot.count) < $5, count(*)
            FROM device_session s
            JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
            WHERE s.instance_id = $1 AND (s.user_id <> '' OR NOT $2)
            GROUP BY 1, 2, 3, 4, 5
            """
        let parameters: [PostgresValue] = [
            .text(channel.target.instanceID.text), .bool(channel.target.kind.needsUser), .text(channel.bizType.text),
            .int32(Int32(share.start)), .int32(Int32(share.size)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.map { row in
                Crowd(
                    presence: DeliveryTrace.Presence(
                        traits: DeviceTraits(
                            operatingSystem: OperatingSystem(rawValue: row.int16(0)), appVersion: row.text(1),
                            slot: DeviceSlot(number: row.bool(4) ? share.start : share.start + share.size)),
                        hasValidVerdict: row.bool(2), isOwner: false, isSuspended: row.bool(3)),
                    devices: row.int64(5))
            }
        }
    }

    /// How many devices are on record of an oplog in each state that a record alone can tell.
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
        return Query(PostgresStatement(sql, [.int64(channelID), .int64(oplogID.value)])) { rows in
            var tally: [DeliveryState: Int64] = [:]
            for row in rows {
                if let state = DeliveryState(rawValue: Int(row.int32(0))) { tally[state] = row.int64(1) }
            }
            return tally
        }
    }

    private static func time(_ row: PostgresRow, _ column: Int) -> WallTime? {
        row.isNull(column) ? nil : WallTime(milliseconds: row.int64(column))
    }
}
