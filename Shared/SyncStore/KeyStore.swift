import PostgreSQL
package import SyncModel

/// The keys of instances, their secrets sealed.
package enum KeyStore {
    /// A live key and whose it is.
    package struct Held: Sendable {
        package let instanceID: InstanceID
        package var key: AppKey
    }

    /// Every live key, the older first.
    package static let all = Query(
        PostgresStatement(
            """
            SELECT instance_id, key_id, purpose, sealed_secret, coalesce(requests_per_second, 0),
                coalesce(pushes_per_day, 0), floor(extract(epoch FROM created_at) * 1000)::bigint
            FROM app_key ORDER BY created_at, key_id
            """)
    ) { rows in
        rows.compactMap { row -> Held? in
            guard let purpose = AppKey.Purpose(rawValue: row.int16(2)) else { return nil }
            let key = AppKey(
                id: row.text(1), purpose: purpose, sealedSecret: row.bytes(3),
                limits: ControlStore.limits(requestsPerSecond: row.int32(4), pushesPerDay: row.int64(5)),
                createdAt: WallTime(milliseconds: row.int64(6)))
            return Held(instanceID: InstanceID(row.text(0)), key: key)
        }
    }

    /// Adds a key; refused when the instance does not exist or has two live ones of the purpose (spec H9), and when the
    /// key is there already.
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

    /// Ends a key; refused when there is none.
    package static func revoke(_ keyID: String, of instanceID: InstanceID, by actor: OperationActor)
        -> ControlStore.Change
    {
        ControlStore.change(
            "SELECT version, is_changed, is_stale FROM revoke_key($1, $2, $3)",
            [actor.value, .text(instanceID.text), .text(keyID)])
    }

    /// Puts another sealing of the same secret in a key's place; refused when the key is gone.
    package static func reseal(
        _ keyID: String, of instanceID: InstanceID, as sealed: [UInt8], by actor: OperationActor
    ) -> ControlStore.Change {
        ControlStore.change(
            "SELECT version, is_changed, is_stale FROM reseal_key($1, $2, $3, $4)",
            [actor.value, .text(instanceID.text), .text(keyID), .bytes(sealed)])
    }
}
