import PostgreSQL
package import SyncModel

/// What all processes count together before they let a request in: nonces that were used, pushes of a day.
package enum AdmissionStore {
    /// A signed request's wish to be the one that uses its nonce.
    package struct Claim: Sendable, Hashable {
        package var keyID: String
        package var nonce: [UInt8]
        /// Unique per request, so that a claim that comes twice is known.
        package var claim: [UInt8]
        package var expiresAt: WallTime

        package init(keyID: String, nonce: [UInt8], claim: [UInt8], expiresAt: WallTime) {
            self.keyID = keyID
            self.nonce = nonce
            self.claim = claim
            self.expiresAt = expiresAt
        }
    }

    /// Who asks for pushes of a day, how many, and how many there are in all.
    package struct QuotaWish: Sendable, Hashable {
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

    /// What there was of a day's pushes.
    package struct Quota: Sendable, Hashable {
        package let granted: Int
        /// Left for everybody.
        package let remaining: Int
        /// When the next day begins (UTC), by the database's clock.
        package let resetsAt: WallTime
        /// How long that is from now; below zero when it has begun meanwhile.
        package let resetsIn: Duration
    }

    /// Whether each claim has its nonce, in the order of the claims: of several for one nonce the first ever made has
    /// it, also when it is made again. Nobody has one that has ended, because its row may be gone already.
    ///
    /// Rows are written in the order of their keys, so that two of these never wait for each other; the update that
    /// changes nothing gives back the claim that was there before.
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
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map { $0.bool(0) } }
    }

    /// Takes pushes of today, all that were asked for or the rest; over all who take, never more than the day has. A
    /// wish that comes twice takes twice, which only leaves less.
    package static func take(_ wish: QuotaWish) -> Query<Quota?> {
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
            .text(wish.instanceID.text), .text(wish.keyID), .int64(Int64(wish.pushes)),
            .int64(Int64(wish.pushesPerDay)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.first.map { row in
                Quota(
                    granted: Int(row.int64(0)), remaining: Int(row.int64(1)),
                    resetsAt: WallTime(milliseconds: row.int64(2)), resetsIn: .milliseconds(row.int64(3)))
            }
        }
    }

    /// Removes nonces whose timestamps are refused by now; what another process is removing is left to it.
    ///
    /// - Parameter limit: rows at the most, which bounds what one statement costs.
    package static func removeEndedNonces(limit: Int) -> Query<Void> {
        let sql = """
            DELETE FROM request_nonce WHERE (key_id, nonce) IN (
                SELECT key_id, nonce FROM request_nonce WHERE expires_at < now()
                ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
            """
        return Query(PostgresStatement(sql, [.int64(Int64(limit))])) { _ in }
    }

    /// Removes the counts of days that are over everywhere.
    package static let removeEndedQuotas = Query(
        PostgresStatement("DELETE FROM push_quota WHERE day < (clock_timestamp() AT TIME ZONE 'UTC')::date - 1")
    ) { _ in }
}
