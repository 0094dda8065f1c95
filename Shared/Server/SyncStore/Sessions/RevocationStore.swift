import PostgreSQL
package import SyncModel

/// Revocations: ends of user sessions by their tenant.
package enum RevocationStore {
    /// Records that a user session ends now; with an empty digest, every user session of the user.
    ///
    /// - Parameter person: the requesting operator, for the audit record; nil: a backend requested it.
    package static func revoke(
        _ instanceID: InstanceID, _ userID: UserID, digest: [UInt8], by person: OperationActor? = nil
    ) -> Query<Void> {
        let sql = """
            WITH revoked AS (
                INSERT INTO session_revocation AS r (instance_id, user_id, session_digest, revoked_at)
                VALUES ($1, $2, $3, clock_timestamp())
                ON CONFLICT (instance_id, user_id, session_digest) DO UPDATE
                SET revoked_at = greatest(r.revoked_at, excluded.revoked_at), revocation_number = DEFAULT
                RETURNING 1)
            SELECT CASE WHEN $4::text[] IS NOT NULL THEN record_operation(
                $4, \(OperationAction.revokeSessions.rawValue)::smallint, $1, $2, NULL,
                jsonb_build_object('sessionDigest', nullif(encode($3, 'hex'), ''))) END
            FROM revoked
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(userID.text), .bytes(digest), person?.value ?? .null,
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }

    /// The latest revocation of a user session.
    package struct Revocation: Sendable, Hashable {
        /// A later one has a higher number, also when the server's clock was set back between them.
        package var number: Int64
        /// Its age by the server's clock, rounded down, and never below 0.
        package var agoMilliseconds: Int64
    }

    /// The latest revocation of a user session; nil: there is none. Run it after the session's registration has
    /// committed: a concurrent revocation is then seen here or sees the session.
    package static func latest(
        of digest: [UInt8], _ instanceID: InstanceID, _ userID: UserID?
    ) -> Query<Revocation?> {
        let sql = """
            SELECT max(revocation_number),
                min(greatest(0, floor(extract(epoch FROM clock_timestamp() - revoked_at) * 1000)))::bigint
            FROM session_revocation
            WHERE instance_id = $1 AND user_id = $2 AND session_digest IN ('', $3)
            """
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(userID?.text ?? ""), .bytes(digest),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            // Without a revocation there is one row with nulls.
            try rows.compactDecode { columns throws(PostgresError) -> Revocation? in
                guard let number = try columns.next(Int64?.self) else { return nil }
                return try Revocation(number: number, agoMilliseconds: columns.next())
            }.first
        }
    }

    /// Removes revocations that are older than any verdict can be, the oldest first.
    ///
    /// The age is in both conditions, because only the outer one is evaluated again for a row that was revoked again
    /// meanwhile.
    ///
    /// - Parameter limit: the largest number of rows, which bounds the cost of one statement.
    package static func removeOld(limit: Int) -> Query<Void> {
        let isOld = "revoked_at < now() - make_interval(secs => $1)"
        let sql = """
            DELETE FROM session_revocation WHERE (instance_id, user_id, session_digest) IN (
                SELECT instance_id, user_id, session_digest FROM session_revocation WHERE \(isOld)
                ORDER BY revoked_at LIMIT $2) AND \(isOld)
            """
        let seconds = Limits.longestVerdictLifetime.components.seconds + 86_400
        return Query(PostgresStatement(sql, [.int64(seconds), .int64(Int64(limit))])) { _ in }
    }
}
