import PostgreSQL
package import SyncModel

/// Leases of gateways, sessions of devices, and the state of a session's channels.
package enum DeviceSessionStore {
    /// A lease that is held now.
    package struct Lease: Sendable {
        package var epoch: Int64
        /// New lease: the control version in force. Renewal: 0.
        package var controlVersion: Int64
        /// Renewal: the number of gateways with a lease, and the sum of their reported sessions.
        package var gateways = 0
        package var sessions = 0
        /// New lease: the snapshot from which the gateway's first sweep begins. Renewal: empty.
        package var snapshot = ""
        /// The database's clock.
        package var databaseTime: WallTime?
    }

    /// Renews a gateway's lease or gives a new one.
    ///
    /// - Parameters:
    ///   - controlVersion: the version of the control data that the gateway's sessions use.
    ///   - sessions: the number of open sessions of the gateway.
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
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Lease(
                    epoch: columns.next(), controlVersion: columns.next(), gateways: columns.next(),
                    sessions: columns.next(), snapshot: columns.next(), databaseTime: columns.next())
            } ?? Lease(epoch: 0, controlVersion: 0)
        }
    }

    /// A registration of a connection, the first or a repeated one.
    package struct Registration: Sendable {
        package var gatewayID: String
        package var gatewayEpoch: Int64
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var storeID: StoreID
        /// A nil value means: no user bound.
        package var userID: UserID?
        package var traits: DeviceTraits
        package var isForeground: Bool
        /// The gateway's number of the connection, which rises while the gateway runs; a repeated command is recognized
        /// by it.
        package var connectionNumber: UInt64
        /// The gateway's number of the registration: a late command does not undo a later one of the connection.
        package var registrationNumber: UInt64
        /// The device's number of the connection, rising within its store; 0: it is not compared.
        package var deviceConnectionNumber: UInt64
        /// 0 for a new connection.
        package var connectionEpoch: Int64
        /// The device becomes the owner of the user.
        package var takesOwnership: Bool
        /// The epoch under which the device became the owner before; 0: it did not. The device becomes the owner again
        /// when the owner on record has a lower epoch, or there is none.
        package var ownershipEpoch: Int64
        package var verdictMilliseconds: Int64
        /// Sync IDs that the device has suspended.
        package var suspended: [BizType]
        /// A nil value means: the instance binds no device ids. SHA-256 of the secret that the device showed; empty:
        /// it showed none.
        package var secretDigest: [UInt8]?
        /// The token to wake the device; nil: unchanged.
        package var pushToken: PushToken?
        /// Sync IDs whose filters the gateway requests: it sends none of their data before the answer.
        package var filtered: [BizType] = []
        /// Parameter values of the device.
        package var parameters: [DeviceParameter] = []
        /// This connection has just bound the user.
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

    /// The result of a registration.
    package struct Registered: Sendable {
        /// 0: a newer connection of the device exists, the gateway's lease is gone, or the secret is wrong.
        package var connectionEpoch: Int64
        /// The gateway whose older connection of this device must be closed.
        package var supersededGatewayID: String?
        package var hasLease: Bool
        /// This device is the owner of the bound user (W12).
        package var ownsUser: Bool
        /// The ownership epoch of the user's present owner, this device or another one; 0: the user has no owner.
        package var ownershipEpoch: Int64 = 0
        /// This registration made the device the owner.
        package var becameOwner = false
        /// The device id belongs to another secret, or the device showed none: nothing was registered.
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
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Registered(
                    connectionEpoch: columns.next(), supersededGatewayID: columns.next(), hasLease: columns.next(),
                    ownsUser: columns.next(), ownershipEpoch: columns.next(), becameOwner: columns.next(),
                    isWrongSecret: columns.next(), databaseTime: columns.next())
            } ?? Registered(connectionEpoch: 0, hasLease: true, ownsUser: false)
        }
    }

    /// The state of one channel of a session.
    package struct ChannelState: Sendable {
        package var channelID: Int64
        package var address: ChannelAddress
        package var head: OplogID
        package var syncPoint: OplogID
        /// The highest id that this store itself has acknowledged or reported; zero where the channel has one sync
        /// point for its user or device.
        package var acknowledged = OplogID.zero
        /// The first oplog of the batch that was resent, and how often.
        package var resentID = OplogID.zero
        package var repeats = 0
        /// The filters of the receiver; nil: none.
        package var filters: FilterHistory?
    }

    /// The channels of a registered session. Where the user or device has one sync point, it is the highest one of its
    /// devices, so a configuration that becomes single-device continues from there (D17). Run it after `register` has
    /// committed: it then reads every append that does not see the session (Design.md#notices-and-pages).
    ///
    /// Plans are made once, often while tables are empty, and a scan of an empty table costs no more than a lookup by
    /// key. So nothing here is joined: the values for a key are known before its table is planned (`OFFSET 0` keeps it
    /// so).
    package static func channels(of session: Registration) -> Query<[ChannelState]> {
        let sql = """
            SELECT c.kind, c.channel_id, c.target, c.biz_type, c.head,
                CASE WHEN c.kind > 1 /* global */ OR (c.kind = 0 /* user */ AND (
                        SELECT f.is_multi_device FROM sync_configuration f
                        WHERE f.instance_id = $1 AND f.biz_type = c.biz_type))
                    THEN s.oplog_id
                    ELSE (SELECT max(p.oplog_id) FROM sync_point p WHERE p.channel_id = c.channel_id) END,
                s.acknowledged_id, s.resent_id, s.repeats
            FROM (
                SELECT * FROM channel WHERE instance_id = $1 AND kind = 0 /* user */ AND target = $2 AND $2 <> ''
                UNION ALL SELECT * FROM channel WHERE instance_id = $1 AND kind = 1 /* device */ AND target = $3
                UNION ALL SELECT * FROM channel WHERE instance_id = $1 AND kind = 2 /* globalUser */
                    AND target = '' AND $2 <> ''
                UNION ALL SELECT * FROM channel WHERE instance_id = $1 AND kind = 3 /* globalDevice */ AND target = ''
            ) c
            LEFT JOIN LATERAL (
                SELECT * FROM sync_point p
                WHERE p.channel_id = c.channel_id AND p.device_id = $3 AND p.store_id = $4
                    AND p.user_id = CASE c.kind WHEN 2 /* globalUser */ THEN $2 ELSE '' END OFFSET 0
            ) s ON true
            """
        let parameters: [PostgresValue] = [
            .text(session.instanceID.text), .text(session.userID?.text ?? ""), .text(session.deviceID.text),
            .text(session.storeID.text),
        ]
        let instanceID = session.instanceID
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            // A channel without a sync point of the receiver has nulls.
            try rows.compactDecode { columns throws(PostgresError) -> ChannelState? in
                guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
                return try ChannelState(
                    channelID: columns.next(),
                    address: ChannelAddress(
                        target: TargetAddress(instanceID: instanceID, kind: kind, target: columns.next()),
                        bizType: columns.next()),
                    head: columns.next(), syncPoint: columns.next(OplogID?.self) ?? .zero,
                    acknowledged: columns.next(OplogID?.self) ?? .zero,
                    resentID: columns.next(OplogID?.self) ?? .zero, repeats: columns.next(Int?.self) ?? 0)
            }
        }
    }

    /// Removes a session unless a newer connection has replaced it.
    package static func close(instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64) -> Query<Void> {
        let sql = "DELETE FROM device_session WHERE instance_id = $1 AND device_id = $2 AND connection_epoch = $3"
        let parameters: [PostgresValue] = [.text(instanceID.text), .text(deviceID.text), .int64(connectionEpoch)]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// Records a session's foreground state and verdict.
    ///
    /// - Parameter number: from the count of `Registration.registrationNumber`; 0: it is not compared. Nothing changes
    ///   after a command of the connection with this or a higher number, because several writers can execute commands
    ///   in another order.
    package static func update(
        instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64, number: UInt64, isForeground: Bool,
        verdictMilliseconds: Int64
    ) -> Query<Void> {
        let sql = """
            UPDATE device_session
            SET is_foreground = $5, verdict_until = clock_timestamp() + make_interval(secs => $6 / 1000.0),
                state_number = greatest(state_number, $4)
            WHERE instance_id = $1 AND device_id = $2 AND connection_epoch = $3 AND (state_number < $4 OR $4 = 0)
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .int64(connectionEpoch), .int64(Int64(clamping: number)),
            .bool(isForeground), .int64(verdictMilliseconds),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// A live session that a push may be for.
    package struct Presence: Sendable {
        /// The place of the target in the request.
        package var ordinal: Int
        package var gatewayID: String
        package var deviceID: DeviceID
        package var traits: DeviceTraits
        package var isOwner: Bool
        package var hasValidVerdict: Bool
        /// The device has suspended the channel's Sync ID.
        package var isSuspended: Bool
    }

    /// The sessions that user and device channels are for, on gateways whose lease is on record. Run it after the
    /// append has committed: a session that it does not see reads a backlog with the append.
    package static func presence(of channels: [ChannelAddress]) -> Query<[Presence]> {
        let sql = """
            SELECT s.device_id, i.ordinal, s.gateway_id, s.operating_system, s.app_version,
                coalesce(w.device_id = s.device_id, false), s.verdict_until > clock_timestamp(),
                i.biz_type = ANY (s.suspended)
            FROM unnest($1::text[], $2::smallint[], $3::text[], $4::text[])
                WITH ORDINALITY AS i (instance_id, kind, target, biz_type, ordinal)
            JOIN LATERAL (
                SELECT * FROM device_session u
                WHERE i.kind = 0 /* user */ AND u.instance_id = i.instance_id AND u.user_id = i.target
                    AND u.user_id <> ''
                UNION ALL
                SELECT * FROM device_session d
                WHERE i.kind = 1 /* device */ AND d.instance_id = i.instance_id AND d.device_id = i.target
            ) s ON true
            JOIN gateway g ON g.gateway_id = s.gateway_id AND g.epoch = s.gateway_epoch
            LEFT JOIN owner w ON i.kind = 0 /* user */ AND w.instance_id = s.instance_id AND w.user_id = s.user_id
            """
        let parameters: [PostgresValue] = [
            .textArray(channels.map(\.target.instanceID.text)), .int16Array(channels.map(\.target.kind.rawValue)),
            .textArray(channels.map(\.target.target)), .textArray(channels.map(\.bizType.text)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                let deviceID = try columns.next(DeviceID.self)
                return try Presence(
                    ordinal: columns.next(Int.self) - 1, gatewayID: columns.next(), deviceID: deviceID,
                    traits: DeviceTraits(
                        operatingSystem: OperatingSystem(rawValue: columns.next()), appVersion: columns.next(),
                        slot: DeviceSlot(of: deviceID)),
                    isOwner: columns.next(), hasValidVerdict: columns.next(), isSuspended: columns.next())
            }
        }
    }

    /// The channels that a sweep found.
    package struct Sweep: Sendable {
        /// Channels of the gateway's sessions, and those of immediate global pushes.
        package var channels: [ChannelState]
        /// The snapshot of the sweep, from which the next one begins.
        package var upto: String

        package init(channels: [ChannelState], upto: String) {
            self.channels = channels
            self.upto = upto
        }
    }

    /// The channels with oplogs from transactions that the present snapshot contains and the snapshot `since` does not.
    /// This finds the channels of lost notices. Those transactions either ran at the snapshot (its list) or began after
    /// it (from its upper end on). No clock takes part, so a commit is found however late it is.
    ///
    /// - Parameter since: `upto` of the former sweep, or the snapshot of the lease; empty: no channel is found.
    package static func sweep(gatewayID: String, since: String) -> Query<Sweep> {
        // A restored dump has oplogs with transaction numbers of another server: the upper bound excludes them. Scalar
        // subqueries are evaluated once, and are index conditions. The gateway must be no index condition, because that
        // would read all of its sessions for each channel: OFFSET 0 keeps it out.
        let sql = """
            SELECT p.snapshot, c.kind, c.channel_id, c.instance_id, c.target, c.biz_type, c.head
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
                    WHERE c.kind > 1 /* global */ AND f.instance_id = c.instance_id AND f.biz_type = c.biz_type
                        AND f.is_immediate
                    UNION ALL
                    SELECT FROM (
                        SELECT u.gateway_id FROM device_session u
                        WHERE c.kind = 0 /* user */ AND u.instance_id = c.instance_id AND u.user_id = c.target
                            AND u.user_id <> ''
                        UNION ALL
                        SELECT d.gateway_id FROM device_session d
                        WHERE c.kind = 1 /* device */ AND d.instance_id = c.instance_id AND d.device_id = c.target
                        OFFSET 0) s
                    WHERE s.gateway_id = $1
                ) s ON true
            ) c ON true
            """
        return Query(PostgresStatement(sql, [.text(gatewayID), .text(since)])) { rows throws(PostgresError) in
            var upto = since
            // Without a channel there is one row with the snapshot.
            let channels = try rows.compactDecode { columns throws(PostgresError) -> ChannelState? in
                upto = try columns.next()
                guard let kind = try columns.next(Int16?.self).flatMap(ChannelKind.init) else { return nil }
                return try ChannelState(
                    channelID: columns.next(),
                    address: ChannelAddress(
                        target: TargetAddress(instanceID: columns.next(), kind: kind, target: columns.next()),
                        bizType: columns.next()),
                    head: columns.next(), syncPoint: .zero)
            }
            return Sweep(channels: channels, upto: upto)
        }
    }
}
