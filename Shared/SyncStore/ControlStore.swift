import PostgreSQL
package import SyncModel

/// Instances and configurations, and the version that rises with every change of them.
package enum ControlStore {
    /// The version of the control data.
    package static let version = Query(PostgresStatement("SELECT version FROM control_version")) { rows in
        rows.first?.int64(0) ?? 0
    }

    /// Every instance.
    package static let instances = Query(
        PostgresStatement("SELECT instance_id, name, is_enabled, validator_url, verdict_lifetime_ms FROM instance")
    ) { rows in
        rows.map { row in
            Instance(
                id: InstanceID(row.text(0)), name: row.text(1), isEnabled: row.bool(2), validatorURL: row.text(3),
                verdictLifetime: .milliseconds(row.int64(4)))
        }
    }

    /// Every configuration.
    package static let configurations = Query(
        PostgresStatement(
            """
            SELECT instance_id, biz_type, description, kind, is_multi_device, is_persistent, threshold, checks_session,
                is_online
            FROM sync_configuration
            """)
    ) { rows in
        rows.compactMap { row -> SyncConfiguration? in
            guard let kind = ChannelKind(rawValue: row.int16(3)) else { return nil }
            let threshold = Int(row.int32(6))
            return SyncConfiguration(
                instanceID: InstanceID(row.text(0)), bizType: BizType(row.text(1)), description: row.text(2),
                kind: kind, isMultiDevice: row.bool(4), isPersistent: row.bool(5),
                repush: threshold == 0 ? .all : .threshold(threshold), checksSession: row.bool(7),
                isOnline: row.bool(8))
        }
    }

    /// Creates or changes an instance; the answer is the version in which it took effect.
    package static func put(_ instance: Instance) -> Query<Int64> {
        let sql = """
            WITH put AS (
                INSERT INTO instance (instance_id, name, is_enabled, validator_url, verdict_lifetime_ms)
                VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (instance_id) DO UPDATE SET name = excluded.name, is_enabled = excluded.is_enabled,
                    validator_url = excluded.validator_url, verdict_lifetime_ms = excluded.verdict_lifetime_ms)
            UPDATE control_version SET version = version + 1 RETURNING version
            """
        let parameters: [PostgresValue] = [
            .text(instance.id.text), .text(instance.name), .bool(instance.isEnabled), .text(instance.validatorURL),
            .int64(instance.verdictLifetime.wholeMilliseconds),
        ]
        return Query(PostgresStatement(sql, parameters)) { $0.first?.int64(0) ?? 0 }
    }

    /// Creates or changes a configuration; Sync ID and target cannot be changed (spec C4): nil then.
    package static func put(_ configuration: SyncConfiguration) -> Query<Int64?> {
        let sql = """
            WITH put AS (
                INSERT INTO sync_configuration AS f (
                    instance_id, biz_type, description, kind, is_multi_device, is_persistent, threshold,
                    checks_session, is_online)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT (instance_id, biz_type) DO UPDATE SET description = excluded.description,
                    is_multi_device = excluded.is_multi_device, is_persistent = excluded.is_persistent,
                    threshold = excluded.threshold, checks_session = excluded.checks_session,
                    is_online = excluded.is_online
                WHERE f.kind = excluded.kind
                RETURNING 1)
            UPDATE control_version SET version = version + 1 WHERE EXISTS (SELECT FROM put) RETURNING version
            """
        var threshold: Int32 = 0
        if case .threshold(let newest) = configuration.repush { threshold = Int32(newest) }
        let parameters: [PostgresValue] = [
            .text(configuration.instanceID.text), .text(configuration.bizType.text), .text(configuration.description),
            .int16(configuration.kind.rawValue), .bool(configuration.isMultiDevice),
            .bool(configuration.isPersistent), .int32(threshold), .bool(configuration.checksSession),
            .bool(configuration.isOnline),
        ]
        return Query(PostgresStatement(sql, parameters)) { $0.first?.int64(0) }
    }
}
