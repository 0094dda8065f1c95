import PostgreSQL
package import SyncModel

/// Instances and configurations, and the control version, which rises with every change of them. Functions of the
/// database make the changes, each with its audit record.
package enum ControlStore {
    /// The control version.
    package static let version = Query(PostgresStatement("SELECT version FROM control_version")) {
        rows throws(PostgresError) in
        try rows.first(Int64.self) ?? 0
    }

    /// Every instance, without its keys.
    package static let instances = Query(PostgresStatement(selectInstance)) { rows throws(PostgresError) in
        try rows.decode(instance)
    }

    /// One instance.
    package static func instance(_ id: InstanceID) -> Query<Instance?> {
        Query(PostgresStatement("\(selectInstance) WHERE instance_id = $1", [.text(id.text)])) {
            rows throws(PostgresError) in
            try rows.first(instance)
        }
    }

    /// Every configuration.
    package static let configurations = Query(PostgresStatement(selectConfiguration)) { rows throws(PostgresError) in
        try rows.compactDecode(configuration)
    }

    /// One configuration.
    package static func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> Query<SyncConfiguration?> {
        let sql = "\(selectConfiguration) WHERE instance_id = $1 AND biz_type = $2"
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(bizType.text)])) {
            rows throws(PostgresError) in
            try rows.compactDecode(configuration).first
        }
    }

    private static let selectInstance = """
        SELECT instance_id, name, is_enabled, validator_url, verdict_lifetime_ms, extract(day FROM retention)::integer,
            coalesce(gateway_app_id, ''), coalesce(gateway_workspace_id, ''), gateway_wraps_body IS TRUE,
            requires_signature, binds_devices, latest_connection_owns, session_units, requests_per_second,
            pushes_per_day, relay_url, revision
        FROM instance
        """

    private static func instance(_ columns: inout PostgresColumns) throws(PostgresError) -> Instance {
        try Instance(
            id: columns.next(), name: columns.next(), isEnabled: columns.next(), validatorURL: columns.next(),
            verdictLifetime: .milliseconds(columns.next(Int64.self)),
            retention: .seconds(Int64(columns.next(Int32.self)) * 86_400), validatorForm: validatorForm(&columns),
            requiresSignature: columns.next(), bindsDevices: columns.next(), latestConnectionOwns: columns.next(),
            sessionUnits: columns.next(),
            limits: KeyLimits(requestsPerSecond: columns.next(), pushesPerDay: columns.next()),
            relayURL: columns.next(), revision: columns.next())
    }

    private static func validatorForm(_ columns: inout PostgresColumns) throws(PostgresError) -> ValidatorForm {
        let gateway = try ValidatorForm.MobileGateway(
            appID: columns.next(), workspaceID: columns.next(), wrapsBody: columns.next())
        return gateway.appID.isEmpty ? .http : .mobileGateway(gateway)
    }

    private static let selectConfiguration = """
        SELECT kind, instance_id, biz_type, description, is_multi_device, is_persistent, threshold, checks_session,
            is_online, is_immediate, verdict_lifetime_ms, filter, attributes, parameters, is_filtered, revision
        FROM sync_configuration
        """

    private static func configuration(_ columns: inout PostgresColumns) throws(PostgresError) -> SyncConfiguration? {
        guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
        return try SyncConfiguration(
            instanceID: columns.next(), bizType: columns.next(), description: columns.next(), kind: kind,
            isMultiDevice: columns.next(), isPersistent: columns.next(),
            repush: RepushMode(newest: columns.next()), checksSession: columns.next(), isOnline: columns.next(),
            isImmediate: columns.next(),
            verdictLifetime: columns.next(Int64?.self).map { .milliseconds($0) },
            subscription: SubscriptionText(
                filter: columns.next(), attributes: columns.next(), parameters: columns.next()),
            isFiltered: columns.next(), revision: columns.next())
    }

    // MARK: Changes

    /// A change with its result.
    package typealias Change = Query<ControlOutcome>

    /// The mode of a change of an instance or a configuration.
    private enum Mode: String { case put, create, modify }

    /// Creates or changes an instance, at any revision.
    package static func put(_ instance: Instance, by actor: OperationActor) -> Change {
        change(instance, .put, by: actor)
    }

    /// Creates an instance; refused when it exists.
    package static func create(_ instance: Instance, by actor: OperationActor) -> Change {
        change(instance, .create, by: actor)
    }

    /// Changes an instance that still has the given revision, otherwise it is stale; refused when there is none.
    package static func modify(_ instance: Instance, by actor: OperationActor) -> Change {
        change(instance, .modify, by: actor)
    }

    private static func change(_ instance: Instance, _ mode: Mode, by actor: OperationActor) -> Change {
        let sql = """
            SELECT version, is_changed, is_stale FROM change_instance($1, $2, ROW($3, $4, $5, $6, nullif($7, ''),
                CASE WHEN $7 <> '' THEN $8 END, CASE WHEN $7 <> '' THEN $9 END, $10, $11, $12, $19, $13, nullif($14, 0),
                nullif($15, 0), make_interval(days => $16), $17, $18)::instance)
            """
        var gateway = ValidatorForm.MobileGateway(appID: "", workspaceID: "")
        if case .mobileGateway(let form) = instance.validatorForm { gateway = form }
        return change(
            sql,
            [
                actor.value, .text(mode.rawValue), .text(instance.id.text), .text(instance.name),
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

    /// Creates or changes a configuration, at any revision; refused for another target (C4).
    package static func put(_ configuration: SyncConfiguration, by actor: OperationActor) -> Change {
        change(configuration, .put, by: actor)
    }

    /// Creates a configuration; refused when the Sync ID exists, or the instance does not.
    package static func create(_ configuration: SyncConfiguration, by actor: OperationActor) -> Change {
        change(configuration, .create, by: actor)
    }

    /// Changes a configuration that still has the given revision, otherwise it is stale; refused when there is none,
    /// and for another target.
    package static func modify(_ configuration: SyncConfiguration, by actor: OperationActor) -> Change {
        change(configuration, .modify, by: actor)
    }

    private static func change(_ configuration: SyncConfiguration, _ mode: Mode, by actor: OperationActor) -> Change {
        let sql = """
            SELECT version, is_changed, is_stale FROM change_configuration($1, $2, ROW($3, $4, $5, $6, $7, $8, $9, $10,
                $11, $12, nullif($13, -1), $14, NULL, $15, $16, $17, false)::sync_configuration)
            """
        return change(
            sql,
            [
                actor.value, .text(mode.rawValue), .text(configuration.instanceID.text),
                .text(configuration.bizType.text), .text(configuration.description),
                .int16(configuration.kind.rawValue), .bool(configuration.isMultiDevice),
                .bool(configuration.isPersistent), .int32(Int32(configuration.repush.newest)),
                .bool(configuration.checksSession),
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

    /// Deletes a configuration that is offline; refused otherwise (D17, C10).
    package static func delete(_ instanceID: InstanceID, _ bizType: BizType, by actor: OperationActor) -> Change {
        change(
            "SELECT version, is_changed, is_stale FROM delete_configuration($1, $2, $3)",
            [actor.value, .text(instanceID.text), .text(bizType.text)])
    }

    /// A change by a function of the database.
    static func change(_ sql: String, _ parameters: [PostgresValue]) -> Change {
        Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) -> ControlOutcome in
                let version = try columns.next(Int64?.self)
                let (isChanged, isStale) = (try columns.next(Bool.self), try columns.next(Bool.self))
                guard let version else { return isStale ? .stale : .refused }
                return isChanged ? .made(version: version) : .unchanged(version: version)
            } ?? .refused
        }
    }
}
