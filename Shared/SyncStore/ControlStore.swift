import PostgreSQL
package import SyncModel

/// Instances and configurations, and the version that rises with every change of them. Functions of the database make
/// the changes, each with its operation record.
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
            coalesce(pushes_per_day, 0), revision, relay_url, latest_connection_owns
        FROM instance
        """

    private static func instance(_ row: PostgresRow) -> Instance {
        let gateway = ValidatorForm.MobileGateway(
            appID: row.text(6), workspaceID: row.text(7), wrapsBody: row.bool(8))
        return Instance(
            id: InstanceID(row.text(0)), name: row.text(1), isEnabled: row.bool(2), validatorURL: row.text(3),
            verdictLifetime: .milliseconds(row.int64(4)), retention: .seconds(Int64(row.int32(5)) * 86_400),
            validatorForm: gateway.appID.isEmpty ? .http : .mobileGateway(gateway), requiresSignature: row.bool(9),
            bindsDevices: row.bool(10), latestConnectionOwns: row.bool(16), sessionUnits: Int(row.int32(11)),
            limits: limits(requestsPerSecond: row.int32(12), pushesPerDay: row.int64(13)),
            relayURL: row.text(15), revision: Int(row.int64(14)))
    }

    /// Limits as columns hold them, 0 for none.
    static func limits(requestsPerSecond: Int32, pushesPerDay: Int64) -> KeyLimits {
        KeyLimits(
            requestsPerSecond: requestsPerSecond == 0 ? nil : Int(requestsPerSecond),
            pushesPerDay: pushesPerDay == 0 ? nil : Int(pushesPerDay))
    }

    private static let selectConfiguration = """
        SELECT instance_id, biz_type, description, kind, is_multi_device, is_persistent, threshold, checks_session,
            is_online, is_immediate, revision, coalesce(verdict_lifetime_ms, -1), filter, attributes, parameters,
            is_filtered
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
            verdictLifetime: row.int64(11) < 0 ? nil : .milliseconds(row.int64(11)),
            subscription: SubscriptionText(filter: row.text(12), attributes: row.text(13), parameters: row.text(14)),
            isFiltered: row.bool(15), revision: Int(row.int64(10)))
    }

    // MARK: Changes

    /// A change, with what became of it.
    package typealias Change = Query<ControlOutcome>

    /// How an instance or configuration is changed.
    private enum Way: String { case put, create, modify }

    /// Creates or changes an instance, whatever its revision.
    package static func put(_ instance: Instance, by actor: OperationActor) -> Change {
        change(instance, .put, by: actor)
    }

    /// Creates an instance; refused when it exists.
    package static func create(_ instance: Instance, by actor: OperationActor) -> Change {
        change(instance, .create, by: actor)
    }

    /// Changes an instance that still has the revision given, otherwise it is stale; refused when there is none.
    package static func modify(_ instance: Instance, by actor: OperationActor) -> Change {
        change(instance, .modify, by: actor)
    }

    private static func change(_ instance: Instance, _ way: Way, by actor: OperationActor) -> Change {
        let sql = """
            SELECT version, is_changed, is_stale FROM change_instance($1, $2, ROW($3, $4, $5, $6, nullif($7, ''),
                CASE WHEN $7 <> '' THEN $8 END, CASE WHEN $7 <> '' THEN $9 END, $10, $11, $12, $19, $13, nullif($14, 0),
                nullif($15, 0), make_interval(days => $16), $17, $18)::instance)
            """
        var gateway = ValidatorForm.MobileGateway(appID: "", workspaceID: "")
        if case .mobileGateway(let its) = instance.validatorForm { gateway = its }
        return change(
            sql,
            [
                actor.value, .text(way.rawValue), .text(instance.id.text), .text(instance.name),
                .bool(instance.isEnabled), .text(instance.validatorURL), .text(gateway.appID),
                .text(gateway.workspaceID), .bool(gateway.wrapsBody),
                .int64(instance.verdictLifetime.wholeMilliseconds),
                .bool(instance.requiresSignature), .bool(instance.bindsDevices), .int32(Int32(instance.sessionUnits)),
                .int32(Int32(clamping: instance.limits.requestsPerSecond ?? 0)),
                .int64(Int64(instance.limits.pushesPerDay ?? 0)),
                .int32(Int32(instance.retention.components.seconds / 86_400)),
                .int64(Int64(instance.revision)), .text(instance.relayURL), .bool(instance.latestConnectionOwns),
            ])
    }

    /// Creates or changes a configuration, whatever its revision; refused for another target (spec C4).
    package static func put(_ configuration: SyncConfiguration, by actor: OperationActor) -> Change {
        change(configuration, .put, by: actor)
    }

    /// Creates a configuration; refused when the Sync ID exists, or the instance does not.
    package static func create(_ configuration: SyncConfiguration, by actor: OperationActor) -> Change {
        change(configuration, .create, by: actor)
    }

    /// Changes a configuration that still has the revision given, otherwise it is stale; refused when there is none, and
    /// for another target.
    package static func modify(_ configuration: SyncConfiguration, by actor: OperationActor) -> Change {
        change(configuration, .modify, by: actor)
    }

    private static func change(_ configuration: SyncConfiguration, _ way: Way, by actor: OperationActor) -> Change {
        var threshold: Int32 = 0
        if case .threshold(let newest) = configuration.repush { threshold = Int32(newest) }
        let sql = """
            SELECT version, is_changed, is_stale FROM change_configuration($1, $2, ROW($3, $4, $5, $6, $7, $8, $9, $10,
                $11, $12, nullif($13, -1), $14, NULL, $15, $16, $17, false)::sync_configuration)
            """
        return change(
            sql,
            [
                actor.value, .text(way.rawValue), .text(configuration.instanceID.text),
                .text(configuration.bizType.text), .text(configuration.description),
                .int16(configuration.kind.rawValue), .bool(configuration.isMultiDevice),
                .bool(configuration.isPersistent), .int32(threshold), .bool(configuration.checksSession),
                .bool(configuration.isOnline), .bool(configuration.isImmediate),
                .int64(configuration.verdictLifetime?.wholeMilliseconds ?? -1),
                .int64(Int64(configuration.revision)), .text(configuration.subscription.filter),
                .text(configuration.subscription.attributes), .text(configuration.subscription.parameters),
            ])
    }

    /// Sets a configuration online or offline; refused when there is none.
    package static func setOnline(
        _ isOnline: Bool, _ instanceID: InstanceID, _ bizType: BizType, by actor: OperationActor
    ) -> Change {
        change(
            "SELECT version, is_changed, is_stale FROM switch_configuration($1, $2, $3, $4)",
            [actor.value, .text(instanceID.text), .text(bizType.text), .bool(isOnline)])
    }

    /// Deletes a configuration that is offline; refused otherwise (spec D17, C10).
    package static func delete(_ instanceID: InstanceID, _ bizType: BizType, by actor: OperationActor) -> Change {
        change(
            "SELECT version, is_changed, is_stale FROM delete_configuration($1, $2, $3)",
            [actor.value, .text(instanceID.text), .text(bizType.text)])
    }

    /// A change by one of the database's functions for changes.
    static func change(_ sql: String, _ parameters: [PostgresValue]) -> Change {
        Query(PostgresStatement(sql, parameters)) { rows in
            guard let row = rows.first else { return .refused }
            guard !row.isNull(0) else { return row.bool(2) ? .stale : .refused }
            return row.bool(1) ? .made(version: row.int64(0)) : .unchanged(version: row.int64(0))
        }
    }
}
