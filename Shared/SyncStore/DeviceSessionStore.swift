import PostgreSQL
package import SyncModel

/// Leases of gateways, sessions of devices, and where a session's channels stand.
package enum DeviceSessionStore {
    /// A lease that is held now.
    package struct Lease: Sendable {
        package var epoch: Int64
        /// Taken anew: the version of the control data in force then; renewed: 0.
        package var controlVersion: Int64
        /// Renewed: how many gateways hold a lease, and how many sessions they said that they have.
        package var gateways = 0
        package var sessions = 0
        /// Taken anew: the snapshot from which the gateway's first sweep begins; renewed: empty.
        package var snapshot = ""
        /// The database's clock.
        package var databaseTime: WallTime?
    }

    /// Renews a gateway's lease or takes a new one.
    ///
    /// - Parameters:
    ///   - controlVersion: of the control data that the gateway's sessions go by.
    ///   - sessions: that are open on the gateway.
    package static func renewLease(
        gatewayID: String, epoch: Int64, controlVersion: Int64 = 0, sessions: Int = 0
    ) -> Query<Lease> {
        let sql = """
            SELECT held_epoch, version_in_force, live_gateways, all_sessions, present_snapshot, \(DatabaseTime.column)
            FROM renew_lease($1, $2, $3, $4)
            """
        let parameters: [PostgresValue] = [
            .text(gatewayID), .int64(epoch), .int64(controlVersion), .int64(Int64(sessions)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            guard let row = rows.first else { return Lease(epoch: 0, controlVersion: 0) }
            return Lease(
                epoch: row.int64(0), controlVersion: row.int64(1), gateways: Int(row.int64(2)),
                sessions: Int(row.int64(3)), snapshot: row.text(4),
                databaseTime: WallTime(milliseconds: row.int64(5)))
        }
    }

    /// A connection to register or to announce again.
    package struct Registration: Sendable {
        package var gatewayID: String
        package var gatewayEpoch: Int64
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var storeID: StoreID
        /// Nil: no user bound.
        package var userID: UserID?
        package var traits: DeviceTraits
        package var isForeground: Bool
        /// The gateway's own number of the connection, which rises while the gateway runs: by it a command that comes
        /// twice is known.
        package var connectionNumber: UInt64
        /// Likewise, of what the gateway asks: a late command does not undo a later one of the connection.
        package var registrationNumber: UInt64
        /// The device's own, of the connections of its store; 0: it does not count.
        package var deviceConnectionNumber: UInt64
        /// 0 for a new connection.
        package var connectionEpoch: Int64
        /// The device becomes the owner of the user.
        package var takesOwnership: Bool
        /// Under which it became the owner before; 0: it did not. It is again where an owner of an earlier epoch is on
        /// record, or none.
        package var ownershipEpoch: Int64
        package var verdictMilliseconds: Int64
        /// What the device does not take now.
        package var suspended: [BizType]
        /// Nil: the instance binds no device ids. SHA-256 of the secret that the device showed, empty when it showed
        /// none.
        package var secretDigest: [UInt8]?
        /// Where the device can be woken; nil: as it said last.
        package var pushToken: PushToken?
        /// Business types whose filters the gateway asks for: it sends nothing of them before it has the answer.
        package var filtered: [BizType] = []
        /// What the device has set.
        package var parameters: [DeviceParameter] = []
        /// The user was bound by this connection just now.
        package var opensBind = false

        package init(
            gatewayID: String, gatewayEpoch: Int64, instanceID: InstanceID, deviceID: DeviceID, storeID: StoreID,
            userID: UserID?, traits: DeviceTraits, isForeground: Bool, connectionNumber: UInt64,
            registrationNumber: UInt64, deviceConnectionNumber: UInt64 = 0, connectionEpoch: Int64,
            takesOwnership: Bool, ownershipEpoch: Int64 = 0, verdictMilliseconds: Int64, suspended: [BizType],
            secretDigest: [UInt8]? = nil, pushToken: PushToken? = nil
        ) {
            self.gatewayID = gatewayID
            self.gatewayEpoch = gatewayEpoch
            self.instanceID = instanceID
            self.deviceID = deviceID
            self.storeID = storeID
            self.userID = userID
            self.traits = traits
            self.isForeground = isForeground
            self.connectionNumber = connectionNumber
            self.registrationNumber = registrationNumber
            self.deviceConnectionNumber = deviceConnectionNumber
            self.connectionEpoch = connectionEpoch
            self.takesOwnership = takesOwnership
            self.ownershipEpoch = ownershipEpoch
            self.verdictMilliseconds = verdictMilliseconds
            self.suspended = suspended
            self.secretDigest = secretDigest
            self.pushToken = pushToken
        }
    }

    /// What became of a registration.
    package struct Registered: Sendable {
        /// 0: a newer connection of the device exists, the gateway's lease is gone, or the secret is wrong.
        package var connectionEpoch: Int64
        /// The gateway whose older connection of this device is to be closed.
        package var supersededGatewayID: String?
        package var hasLease: Bool
        /// This device is the owner of the bound user (spec §1).
        package var ownsUser: Bool
        /// Under which the user's owner, whichever device that is, became it; 0: the user has none.
        package var ownershipEpoch: Int64 = 0
        /// With this registration the device became the owner.
        package var becameOwner = false
        /// The device id belongs to another secret, or none was shown: nothing was registered.
        package var isWrongSecret = false
        /// The database's clock.
        package var databaseTime: WallTime?
    }

    /// Registers a connection.
    package static func register(_ session: Registration) -> Query<Registered> {
        let sql = """
            SELECT connection_epoch, superseded_gateway, has_lease, owns_user, ownership_epoch, became_owner,
                is_wrong_secret, \(DatabaseTime.column)
            FROM register_session(
                $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
            """
        let parameters: [PostgresValue] = [
            .text(session.gatewayID), .int64(session.gatewayEpoch), .text(session.instanceID.text),
            .text(session.deviceID.text), .text(session.storeID.text),
            .int64(Int64(clamping: session.deviceConnectionNumber)), .text(session.userID?.text ?? ""),
            .int16(session.traits.operatingSystem?.rawValue ?? 0), .text(session.traits.appVersion),
            .int16(Int16(session.traits.slot.number)), .bool(session.isForeground),
            .int64(Int64(clamping: session.connectionNumber)), .int64(Int64(clamping: session.registrationNumber)),
            .int64(session.connectionEpoch),
            .bool(session.takesOwnership), .int64(session.ownershipEpoch),
            .int64(session.verdictMilliseconds), .textArray(session.suspended.map(\.text)),
            .bool(session.secretDigest != nil), .bytes(session.secretDigest ?? []),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            guard let row = rows.first else {
                return Registered(connectionEpoch: 0, hasLease: true, ownsUser: false)
            }
            return Registered(
                connectionEpoch: row.int64(0), supersededGatewayID: row.isNull(1) ? nil : row.text(1),
                hasLease: row.bool(2), ownsUser: row.bool(3), ownershipEpoch: row.int64(4), becameOwner: row.bool(5),
                isWrongSecret: row.bool(6), databaseTime: WallTime(milliseconds: row.int64(7)))
        }
    }

    /// Where one channel of a session stands.
    package struct ChannelState: Sendable {
        package var channelID: Int64
        package var address: ChannelAddress
        package var head: OplogID
        package var syncPoint: OplogID
        /// The largest id that this store itself has acknowledged or claimed; zero where the channel has one sync point
        /// for its user or device.
        package var acknowledged = OplogID.zero
        /// How often the batch that begins with this oplog went out again.
        package var resentID = OplogID.zero
        package var repeats = 0
        /// By which filters the flow goes; nil: by none.
        package var filters: FilterHistory?
    }

    /// The channels of a registered session. Where the user or device has one sync point it is the highest that any of
    /// its devices ever recorded, so that a configuration which becomes single-device goes on from there (spec D17). Run
    /// after `register` has committed: an append that does not see the session is then seen here (design §1, register
    /// first, then read).
    ///
    /// Plans are made once, often while tables are empty, and an empty table is read whole as cheaply as by its key. So
    /// nothing here is joined: what a key is compared with is known before its table is planned (`OFFSET 0` keeps it so).
    package static func channels(of session: Registration) -> Query<[ChannelState]> {
        let sql = """
            SELECT c.channel_id, c.kind, c.target, c.biz_type, c.head,
                CASE WHEN c.kind > 1 OR (c.kind = 0 AND (
                        SELECT f.is_multi_device FROM sync_configuration f
                        WHERE f.instance_id = $1 AND f.biz_type = c.biz_type))
                    THEN s.oplog_id
                    ELSE (SELECT max(p.oplog_id) FROM sync_point p WHERE p.channel_id = c.channel_id) END,
                s.resent_id, s.repeats, s.acknowledged_id
            FROM (
                SELECT * FROM channel WHERE instance_id = $1 AND kind = 0 AND target = $2 AND $2 <> ''
                UNION ALL SELECT * FROM channel WHERE instance_id = $1 AND kind = 1 AND target = $3
                UNION ALL SELECT * FROM channel WHERE instance_id = $1 AND kind = 2 AND target = '' AND $2 <> ''
                UNION ALL SELECT * FROM channel WHERE instance_id = $1 AND kind = 3 AND target = ''
            ) c
            LEFT JOIN LATERAL (
                SELECT * FROM sync_point p
                WHERE p.channel_id = c.channel_id AND p.device_id = $3 AND p.store_id = $4
                    AND p.user_id = CASE c.kind WHEN 2 THEN $2 ELSE '' END OFFSET 0
            ) s ON true
            """
        let parameters: [PostgresValue] = [
            .text(session.instanceID.text), .text(session.userID?.text ?? ""), .text(session.deviceID.text),
            .text(session.storeID.text),
        ]
        let instanceID = session.instanceID
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.compactMap { row in
                guard let kind = ChannelKind(rawValue: row.int16(1)) else { return nil }
                let target = TargetAddress(instanceID: instanceID, kind: kind, target: row.text(2))
                return ChannelState(
                    channelID: row.int64(0), address: ChannelAddress(target: target, bizType: BizType(row.text(3))),
                    head: OplogID(row.int64(4)), syncPoint: row.isNull(5) ? .zero : OplogID(row.int64(5)),
                    acknowledged: row.isNull(8) ? .zero : OplogID(row.int64(8)),
                    resentID: row.isNull(6) ? .zero : OplogID(row.int64(6)),
                    repeats: row.isNull(7) ? 0 : Int(row.int16(7)))
            }
        }
    }

    /// Removes a session unless a newer connection has replaced it.
    package static func close(instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64) -> Query<Void> {
        let sql = "DELETE FROM device_session WHERE instance_id = $1 AND device_id = $2 AND connection_epoch = $3"
        let parameters: [PostgresValue] = [.text(instanceID.text), .text(deviceID.text), .int64(connectionEpoch)]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// Notes a session's foreground state and verdict.
    package static func update(
        instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64, isForeground: Bool,
        verdictMilliseconds: Int64
    ) -> Query<Void> {
        let sql = """
            UPDATE device_session
            SET is_foreground = $4, verdict_until = clock_timestamp() + make_interval(secs => $5 / 1000.0)
            WHERE instance_id = $1 AND device_id = $2 AND connection_epoch = $3
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .int64(connectionEpoch), .bool(isForeground),
            .int64(verdictMilliseconds),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// A live session that a push may be for.
    package struct Presence: Sendable {
        /// Which of the targets asked for.
        package var ordinal: Int
        package var gatewayID: String
        package var deviceID: DeviceID
        package var traits: DeviceTraits
        package var isOwner: Bool
        package var hasValidVerdict: Bool
        /// The device does not take the channel's business type now.
        package var isSuspended: Bool
    }

    /// The sessions that channels are for, of user and device kinds, on gateways whose lease is on record. Run after the
    /// append has committed: a session that is not seen here reads a backlog that has the append.
    package static func presence(of channels: [ChannelAddress]) -> Query<[Presence]> {
        let sql = """
            SELECT i.ordinal, s.gateway_id, s.device_id, s.operating_system, s.app_version,
                coalesce(w.device_id = s.device_id, false), s.verdict_until > clock_timestamp(),
                i.biz_type = ANY (s.suspended)
            FROM unnest($1::text[], $2::smallint[], $3::text[], $4::text[])
                WITH ORDINALITY AS i (instance_id, kind, target, biz_type, ordinal)
            JOIN LATERAL (
                SELECT * FROM device_session u
                WHERE i.kind = 0 AND u.instance_id = i.instance_id AND u.user_id = i.target AND u.user_id <> ''
                UNION ALL
                SELECT * FROM device_session d
                WHERE i.kind = 1 AND d.instance_id = i.instance_id AND d.device_id = i.target
            ) s ON true
            JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
            LEFT JOIN owner w ON i.kind = 0 AND w.instance_id = s.instance_id AND w.user_id = s.user_id
            """
        let parameters: [PostgresValue] = [
            .textArray(channels.map(\.target.instanceID.text)), .int16Array(channels.map(\.target.kind.rawValue)),
            .textArray(channels.map(\.target.target)), .textArray(channels.map(\.bizType.text)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.map { row in
                Presence(
                    ordinal: Int(row.int64(0)) - 1, gatewayID: row.text(1), deviceID: DeviceID(row.text(2)),
                    traits: DeviceTraits(
                        operatingSystem: OperatingSystem(rawValue: row.int16(3)), appVersion: row.text(4),
                        slot: DeviceSlot(of: DeviceID(row.text(2)))),
                    isOwner: row.bool(5), hasValidVerdict: row.bool(6), isSuspended: row.bool(7))
            }
        }
    }

    /// The channels that a sweep found.
    package struct Sweep: Sendable {
        /// Channels of the gateway's sessions, and those of immediate global pushes.
        package var channels: [ChannelState]
        /// The snapshot that the sweep looked at: where the next one begins.
        package var upto: String

        package init(channels: [ChannelState], upto: String) {
            self.channels = channels
            self.upto = upto
        }
    }

    /// The channels that got an oplog by a transaction that a snapshot does not have and the present one has: what lost
    /// notices told of. Those transactions were either under way at the snapshot (its list) or began after it (from its
    /// upper end on). No clock has a part in it, so a commit is found however long it took.
    ///
    /// - Parameter since: `upto` of the sweep before, or the snapshot that came with the lease; empty: no channel is
    ///   found.
    package static func sweep(gatewayID: String, since: String) -> Query<Sweep> {
        // The transactions of a database that was put back from a dump are not those of this server: the upper bound
        // leaves them out. Scalar subqueries are evaluated once, and are index conditions.
        let sql = """
            SELECT p.snapshot, c.channel_id, c.instance_id, c.kind, c.target, c.biz_type, c.head
            FROM (SELECT pg_current_snapshot()::text AS snapshot) p
            LEFT JOIN LATERAL (
                SELECT DISTINCT c.channel_id, c.instance_id, c.kind, c.target, c.biz_type, c.head
                FROM (SELECT DISTINCT o.channel_id FROM oplog o
                      WHERE o.written_by >= (SELECT pg_snapshot_xmax(nullif($2, '')::pg_snapshot)::text::bigint)
                          AND o.written_by < (SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
                          OR o.written_by = ANY (ARRAY(
                              SELECT x::text::bigint FROM pg_snapshot_xip(nullif($2, '')::pg_snapshot) x))) r
                JOIN channel c ON c.channel_id = r.channel_id
                JOIN LATERAL (
                    SELECT FROM sync_configuration f
                    WHERE c.kind > 1 AND f.instance_id = c.instance_id AND f.biz_type = c.biz_type AND f.is_immediate
                    UNION ALL
                    SELECT FROM device_session u
                    WHERE c.kind = 0 AND u.instance_id = c.instance_id AND u.user_id = c.target AND u.user_id <> ''
                        AND u.gateway_id = $1
                    UNION ALL
                    SELECT FROM device_session d
                    WHERE c.kind = 1 AND d.instance_id = c.instance_id AND d.device_id = c.target
                        AND d.gateway_id = $1
                ) s ON true
            ) c ON true
            """
        return Query(PostgresStatement(sql, [.text(gatewayID), .text(since)])) { rows in
            let channels = rows.compactMap { row -> ChannelState? in
                guard !row.isNull(1), let kind = ChannelKind(rawValue: row.int16(3)) else { return nil }
                let target = TargetAddress(instanceID: InstanceID(row.text(2)), kind: kind, target: row.text(4))
                return ChannelState(
                    channelID: row.int64(1), address: ChannelAddress(target: target, bizType: BizType(row.text(5))),
                    head: OplogID(row.int64(6)), syncPoint: .zero)
            }
            return Sweep(channels: channels, upto: rows.first?.text(0) ?? since)
        }
    }
}
