import PostgreSQL
package import SyncModel

/// The keys of instances, with sealed secrets.
package enum KeyStore {
    /// A key and its instance.
    package struct Held: Sendable {
        package let instanceID: InstanceID
        package var key: AppKey
    }

    /// All keys, the oldest first.
    package static let all = Query(
        PostgresStatement(
            """
            SELECT purpose, instance_id, key_id, sealed_secret, requests_per_second, pushes_per_day,
                floor(extract(epoch FROM created_at) * 1000)::bigint
            FROM app_key ORDER BY created_at, key_id
            """)
    ) { rows throws(PostgresError) in
        try rows.compactDecode { columns throws(PostgresError) -> Held? in
            guard let purpose = AppKey.Purpose(rawValue: try columns.next()) else { return nil }
            return try Held(
                instanceID: columns.next(),
                key: AppKey(
                    id: columns.next(), purpose: purpose, sealedSecret: columns.next(),
                    limits: KeyLimits(requestsPerSecond: columns.next(), pushesPerDay: columns.next()),
                    createdAt: columns.next()))
        }
    }

    /// Adds a key; refused when the instance does not exist or has two keys of the purpose (H9), and when the key
    /// exists already.
    package static func create(_ key: AppKey, of instanceID: InstanceID, by actor: OperationActor)
        -> ControlStore.Change
    {
        let sql = """
            SELECT version, is_changed, is_stale FROM create_key(
                $1, ROW($2, $3, $4, $5, nullif($6, 0), nullif($7, 0), NULL)::app_key, $8)
            """
        return ControlStore.change(
            sql,
            [
                actor.value, .text(key.id), .text(instanceID.text), .int16(key.purpose.rawValue),
                .bytes(key.sealedSecret), .int32(Int32(clamping: key.limits.requestsPerSecond ?? 0)),
                .int64(Int64(key.limits.pushesPerDay ?? 0)), .int64(Int64(Limits.liveKeys)),
            ])
    }

    /// Revokes a key; refused when there is none.
    package static func revoke(_ keyID: String, of instanceID: InstanceID, by actor: OperationActor)
        -> ControlStore.Change
    {
        ControlStore.change(
            "SELECT version, is_changed, is_stale FROM revoke_key($1, $2, $3)",
            [actor.value, .text(instanceID.text), .text(keyID)])
    }

    /// Replaces the sealed form of a key's secret; refused when the key is gone.
    package static func reseal(
        _ keyID: String, of instanceID: InstanceID, as sealed: [UInt8], by actor: OperationActor
    ) -> ControlStore.Change {
        ControlStore.change(
            "SELECT version, is_changed, is_stale FROM reseal_key($1, $2, $3, $4)",
            [actor.value, .text(instanceID.text), .text(keyID), .bytes(sealed)])
    }
}
