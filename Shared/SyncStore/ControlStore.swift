import PostgreSQL
package import SyncModel

/// Instances and configurations, the version that rises with every change of them, and the record of the changes.
package enum ControlStore {
    /// The version of the control data.
    package static let version = Query(PostgresStatement("SELECT version FROM control_version")) { rows in
        rows.first?.int64(0) ?? 0
    }

    /// Every instance, without its keys.
    package static let instances = Query(PostgresStatement(selectInstance)) { rows in rows.map(instance) }

    /// One instance.
    package static func instance(_ id: InstanceID) -> Query<Instance?> {
        Query(PostgresStatement("\(selectInstance) WHERE instance_id = $1", [.text(id.text)])) { rows in
            rows.first.map(instance)
        }
    }

    /// Every configuration.
    package static let configurations = Query(PostgresStatement(selectConfiguration)) { rows in
        rows.compactMap(configuration)
    }

    /// One configuration.
    package static func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> Query<SyncConfiguration?> {
        let sql = "\(selectConfiguration) WHERE instance_id = $1 AND biz_type = $2"
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(bizType.text)])) { rows in
            rows.first.flatMap(configuration)
        }
    }

    private static let selectInstance = """
        SELECT instance_id, name, is_enabled, validator_url, verdict_lifetime_ms, extract(day FROM retention)::integer,
            coalesce(gateway_app_id, ''), coalesce(gateway_workspace_id, ''), gateway_wraps_body IS TRUE,
            requires_signature, binds_devices, session_units, coalesce(requests_per_second, 0),
            coalesce(pushes_per_day, 0)
        FROM instance
        """

    private static func instance(_ row: PostgresRow) -> Instance {
        let gateway = ValidatorForm.MobileGateway(
            appID: row.text(6), workspaceID: row.text(7), wrapsBody: row.bool(8))
        return Instance(
            id: InstanceID(row.text(0)), name: row.text(1), isEnabled: row.bool(2), validatorURL: row.text(3),
            verdictLifetime: .milliseconds(row.int64(4)), retention: .seconds(Int64(row.int32(5)) * 86_400),
            validatorForm: gateway.appID.isEmpty ? .http : .mobileGateway(gateway), requiresSignature: row.bool(9),
            bindsDevices: row.bool(10), sessionUnits: Int(row.int32(11)),
            limits: limits(requestsPerSecond: row.int32(12), pushesPerDay: row.int64(13)))
    }

    /// Limits as columns hold them, 0 for none.
    static func limits(requestsPerSecond: Int32, pushesPerDay: Int64) -> KeyLimits {
        KeyLimits(
            requestsPerSecond: requestsPerSecond == 0 ? nil : Int(requestsPerSecond),
            pushesPerDay: pushesPerDay == 0 ? nil : Int(pushesPerDay))
    }

    private static let selectConfiguration = """
        SELECT instance_id, biz_type, description, kind, is_multi_device, is_persistent, threshold, checks_session,
            is_online, is_immediate, revision, coalesce(verdict_lifetime_ms, -1)
        FROM sync_configuration
        """

    private static func configuration(_ row: PostgresRow) -> SyncConfiguration? {
        guard let kind = ChannelKind(rawValue: row.int16(3)) else { return nil }
        let threshold = Int(row.int32(6))
        return SyncConfiguration(
            instanceID: InstanceID(row.text(0)), bizType: BizType(row.text(1)), description: row.text(2), kind: kind,
            isMultiDevice: row.bool(4), isPersistent: row.bool(5),
            repush: threshold == 0 ? .all : .threshold(threshold), checksSession: row.bool(7), isOnline: row.bool(8),
            isImmediate: row.bool(9),
            verdictLifetime: row.int64(11) < 0 ? nil : .milliseconds(row.int64(11)), revision: Int(row.int32(10)))
    }

    // MARK: Changes

    /// A change: the answer is the version in which it took effect, nil when its condition did not hold.
    package typealias Change = Query<Int64?>

    /// Creates or changes an instance.
    package static func put(_ instance: Instance, by actor: String) -> Change {
        let sql = """
            INSERT INTO instance (instance_id, name, is_enabled, validator_url, verdict_lifetime_ms, retention,
                gateway_app_id, gateway_workspace_id, gateway_wraps_body, requires_signature, binds_devices,
                session_units, requests_per_second, pushes_per_day)
            VALUES ($3, $6, $7, $8, $9, make_interval(days => $10), nullif($11, ''),
                CASE WHEN $11 <> '' THEN $12 END, CASE WHEN $11 <> '' THEN $13 END, $14, $15, $16, nullif($17, 0),
                nullif($18, 0))
            ON CONFLICT (instance_id) DO UPDATE SET name = excluded.name, is_enabled = excluded.is_enabled,
                validator_url = excluded.validator_url, verdict_lifetime_ms = excluded.verdict_lifetime_ms,
                retention = excluded.retention, gateway_app_id = excluded.gateway_app_id,
                gateway_workspace_id = excluded.gateway_workspace_id,
                gateway_wraps_body = excluded.gateway_wraps_body,
                requires_signature = excluded.requires_signature, binds_devices = excluded.binds_devices,
                session_units = excluded.session_units, requests_per_second = excluded.requests_per_second,
                pushes_per_day = excluded.pushes_per_day
            """
        var gateway = ValidatorForm.MobileGateway(appID: "", workspaceID: "")
        // Keys are stored by themselves, and have no place in the record.
        var instance = instance
        instance.keys = []
        if case .mobileGateway(let its) = instance.validatorForm { gateway = its }
        return change(
            sql, "put instance", by: actor, instance.id, detail: "\(instance)",
            [
                .text(instance.name), .bool(instance.isEnabled), .text(instance.validatorURL),
                .int64(instance.verdictLifetime.wholeMilliseconds),
                .int32(Int32(instance.retention.components.seconds / 86_400)),
                .text(gateway.appID), .text(gateway.workspaceID), .bool(gateway.wrapsBody),
                .bool(instance.requiresSignature), .bool(instance.bindsDevices), .int32(Int32(instance.sessionUnits)),
                .int32(Int32(clamping: instance.limits.requestsPerSecond ?? 0)),
                .int64(Int64(instance.limits.pushesPerDay ?? 0)),
            ])
    }

    /// Creates or changes a configuration; Sync ID, scope and target cannot be changed (spec C4): nil then.
    package static func put(_ configuration: SyncConfiguration, by actor: String) -> Change {
        let sql = """
            \(insertConfiguration)
            ON CONFLICT (instance_id, biz_type) DO UPDATE SET description = excluded.description,
                is_multi_device = excluded.is_multi_device, is_persistent = excluded.is_persistent,
                threshold = excluded.threshold, checks_session = excluded.checks_session,
                is_online = excluded.is_online, is_immediate = excluded.is_immediate,
                verdict_lifetime_ms = excluded.verdict_lifetime_ms, revision = f.revision + 1
            WHERE f.kind = excluded.kind
            """
        return change(sql, "put configuration", by: actor, configuration)
    }

    /// Creates a configuration; nil when the Sync ID exists.
    package static func create(_ configuration: SyncConfiguration, by actor: String) -> Change {
        change("\(insertConfiguration) ON CONFLICT DO NOTHING", "create", by: actor, configuration)
    }

    /// Changes a configuration that still has the revision given; nil otherwise, and for another scope or target.
    package static func modify(_ configuration: SyncConfiguration, by actor: String) -> Change {
        let sql = """
            UPDATE sync_configuration SET description = $6, is_multi_device = $8, is_persistent = $9, threshold = $10,
                checks_session = $11, is_online = $12, is_immediate = $13, verdict_lifetime_ms = nullif($14, -1),
                revision = revision + 1
            WHERE instance_id = $3 AND biz_type = $4 AND kind = $7 AND revision = $15
            """
        return change(sql, "modify", by: actor, configuration, [.int32(Int32(configuration.revision))])
    }

    /// Sets a configuration online or offline; nil when there is none.
    package static func setOnline(
        _ isOnline: Bool, _ instanceID: InstanceID, _ bizType: BizType, by actor: String
    ) -> Change {
        let sql = """
            UPDATE sync_configuration SET is_online = $6, revision = revision + 1
            WHERE instance_id = $3 AND biz_type = $4
            """
        return change(sql, isOnline ? "online" : "offline", by: actor, instanceID, bizType, [.bool(isOnline)])
    }

    /// Deletes a configuration that is offline; nil otherwise. Its oplogs and keys no longer count from then on, their
    /// space goes with retention, and its channels' ids go on rising should it be created again (spec D17).
    package static func delete(_ instanceID: InstanceID, _ bizType: BizType, by actor: String) -> Change {
        let sql = "DELETE FROM sync_configuration WHERE instance_id = $3 AND biz_type = $4 AND NOT is_online"
        return change(sql, "delete", by: actor, instanceID, bizType)
    }

    private static let insertConfiguration = """
        INSERT INTO sync_configuration AS f (
            instance_id, biz_type, description, kind, is_multi_device, is_persistent, threshold, checks_session,
            is_online, is_immediate, verdict_lifetime_ms)
        SELECT $3, $4, $6, $7, $8, $9, $10, $11, $12, $13, nullif($14, -1) WHERE EXISTS (SELECT FROM instance WHERE instance_id = $3)
        """

    private static func change(
        _ sql: String, _ operation: String, by actor: String, _ configuration: SyncConfiguration,
        _ more: [PostgresValue] = []
    ) -> Change {
        var threshold: Int32 = 0
        if case .threshold(let newest) = configuration.repush { threshold = Int32(newest) }
        return change(
            sql, operation, by: actor, configuration.instanceID, configuration.bizType, detail: "\(configuration)",
            [
                .text(configuration.description), .int16(configuration.kind.rawValue),
                .bool(configuration.isMultiDevice), .bool(configuration.isPersistent), .int32(threshold),
                .bool(configuration.checksSession), .bool(configuration.isOnline), .bool(configuration.isImmediate),
                .int64(configuration.verdictLifetime?.wholeMilliseconds ?? -1),
            ] + more)
    }

    /// The change, the next version and the record, in one statement. `$1` to `$5` are the record's, the change's own
    /// parameters follow.
    static func change(
        _ sql: String, _ operation: String, by actor: String, _ instanceID: InstanceID,
        _ bizType: BizType = BizType(""), detail: String = "", _ parameters: [PostgresValue] = []
    ) -> Change {
        let statement = """
            WITH changed AS (\(sql) RETURNING 1), bumped AS (
                UPDATE control_version SET version = version + 1 WHERE EXISTS (SELECT FROM changed) RETURNING version
            ), recorded AS (
                INSERT INTO control_record (version, actor, operation, instance_id, biz_type, detail)
                SELECT version, $1, $2, $3, $4, $5 FROM bumped)
            SELECT version FROM bumped
            """
        let record: [PostgresValue] = [
            .text(actor), .text(operation), .text(instanceID.text), .text(bizType.text), .text(detail),
        ]
        return Query(PostgresStatement(statement, record + parameters)) { $0.first?.int64(0) }
    }
}
