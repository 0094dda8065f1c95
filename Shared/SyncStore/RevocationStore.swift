import PostgreSQL
package import SyncModel

/// Sessions that their tenant has ended.
package enum RevocationStore {
    /// Notes that a session was ended now; with an empty digest every session of the user.
    ///
    /// - Parameter person: who asked for it, for the operation records; nil: a backend did.
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

    /// The latest end of a session.
    package struct Revocation: Sendable, Hashable {
        /// A later one has a higher number, whatever the server's clock did since.
        package var number: Int64
        /// So long ago by the server's clock, rounded down, and never below 0.
        package var agoMilliseconds: Int64
    }

    /// How a session was ended last; nil: it was not. Run after the session's registration has committed, as one that
    /// is being revoked meanwhile is then seen here or there.
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
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.first.flatMap {
                $0.isNull(0) ? nil : Revocation(number: $0.int64(0), agoMilliseconds: $0.int64(1))
            }
        }
    }

    /// Removes those that are older than any verdict can be, the oldest first.
    ///
    /// The age is asked twice: of one that is made again meanwhile only the outer condition is looked at anew.
    ///
    /// - Parameter limit: rows at the most, which bounds what one statement costs.
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
