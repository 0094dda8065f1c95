import PostgreSQL
package import SyncModel

/// The admission data that all processes share: used nonces and daily quotas.
package enum AdmissionStore {
    /// A signed request's claim of its nonce.
    package struct Claim: Sendable, Hashable {
        package var keyID: String
        package var nonce: [UInt8]
        /// Unique per request, so that a repeated claim is recognized.
        package var claim: [UInt8]
        package var expiresAt: WallTime

        package init(keyID: String, nonce: [UInt8], claim: [UInt8], expiresAt: WallTime) {
            self.keyID = keyID
            self.nonce = nonce
            self.claim = claim
            self.expiresAt = expiresAt
        }
    }

    /// A request for a part of a daily quota.
    package struct QuotaRequest: Sendable, Hashable {
        package var instanceID: InstanceID
        /// Empty: calls without a key.
        package var keyID: String
        package var pushes: Int
        package var pushesPerDay: Int

        package init(instanceID: InstanceID, keyID: String, pushes: Int, pushesPerDay: Int) {
            self.instanceID = instanceID
            self.keyID = keyID
            self.pushes = pushes
            self.pushesPerDay = pushesPerDay
        }
    }

    /// The answer to a quota request.
    package struct Quota: Sendable, Hashable {
        package let granted: Int
        /// Left for all processes.
        package let remaining: Int
        /// The begin of the next day (UTC), by the database's clock.
        package let resetsAt: WallTime
        /// The time until `resetsAt`; below zero when the day has begun meanwhile.
        package let resetsIn: Duration
    }

    /// Whether each claim has its nonce, in the order of the claims. The first claim of a nonce has it, also when it is
    /// repeated. No claim has an expired nonce, because its row may be deleted already.
    ///
    /// Rows are written in the order of their keys, so two of these statements never deadlock. The update that changes
    /// nothing returns the existing claim.
    package static func claim(_ claims: [Claim]) -> Query<[Bool]> {
        let sql = """
            WITH given AS (
                SELECT * FROM unnest($1::text[], $2::bytea[], $3::bytea[], $4::bigint[])
                    WITH ORDINALITY AS g (key_id, nonce, claim, expires_at_ms, number)
            ), held AS (
                INSERT INTO request_nonce AS r (key_id, nonce, claim, expires_at)
                SELECT DISTINCT ON (key_id COLLATE "C", nonce) key_id, nonce, claim,
                    to_timestamp(expires_at_ms / 1000.0)
                FROM given ORDER BY key_id COLLATE "C", nonce, number
                ON CONFLICT (key_id, nonce) DO UPDATE SET claim = r.claim
                RETURNING key_id, nonce, claim)
            SELECT h.claim = g.claim AND to_timestamp(g.expires_at_ms / 1000.0) > clock_timestamp()
            FROM given g JOIN held h ON h.key_id = g.key_id AND h.nonce = g.nonce
            ORDER BY g.number
            """
        let parameters: [PostgresValue] = [
            .textArray(claims.map(\.keyID)), .bytesArray(claims.map(\.nonce)), .bytesArray(claims.map(\.claim)),
            .int64Array(claims.map(\.expiresAt.milliseconds)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(Bool.self) }
    }

    /// Reserves pushes of today: all that were requested, or the rest. All processes together never get more than the
    /// daily quota. A repeated request reserves twice, which only leaves less.
    package static func reserve(_ request: QuotaRequest) -> Query<Quota?> {
        let sql = """
            INSERT INTO push_quota AS q (instance_id, key_id, day, taken, granted)
            SELECT $1, $2, (clock_timestamp() AT TIME ZONE 'UTC')::date, least($3, $4), least($3, $4)
            ON CONFLICT (instance_id, key_id, day) DO UPDATE
            SET taken = greatest(q.taken, least(q.taken + $3, $4)),
                granted = greatest(q.taken, least(q.taken + $3, $4)) - q.taken
            RETURNING granted, greatest($4 - taken, 0),
                (extract(epoch FROM (day + 1)::timestamp AT TIME ZONE 'UTC') * 1000)::bigint,
                ceil(extract(epoch FROM (day + 1)::timestamp AT TIME ZONE 'UTC' - clock_timestamp()) * 1000)::bigint
            """
        let parameters: [PostgresValue] = [
            .text(request.instanceID.text), .text(request.keyID), .int64(Int64(request.pushes)),
            .int64(Int64(request.pushesPerDay)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Quota(
                    granted: columns.next(), remaining: columns.next(), resetsAt: columns.next(),
                    resetsIn: .milliseconds(columns.next(Int64.self)))
            }
        }
    }

    /// Removes expired nonces, whose timestamps are refused now; rows that another process is removing are skipped.
    ///
    /// - Parameter limit: the largest number of rows, which bounds the cost of one statement.
    package static func removeEndedNonces(limit: Int) -> Query<Void> {
        let sql = """
            DELETE FROM request_nonce WHERE (key_id, nonce) IN (
                SELECT key_id, nonce FROM request_nonce WHERE expires_at < now()
                ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
            """
        return Query(PostgresStatement(sql, [.int64(Int64(limit))])) { _ in }
    }

    /// Removes the quotas of past days, except the last day.
    package static let removeEndedQuotas = Query(
        PostgresStatement("DELETE FROM push_quota WHERE day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 1")
    ) { _ in }
}
