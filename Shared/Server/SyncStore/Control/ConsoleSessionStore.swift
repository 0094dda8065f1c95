import PostgreSQL
package import SyncModel

/// Sessions of all consoles; an ended session is ended at all of them (SEC13).
package enum ConsoleSessionStore {
    /// A valid session.
    package struct Session: Sendable {
        package let account: ConsoleAccount
        /// The password was entered within the last five minutes.
        package let isConfirmed: Bool
        /// The last recorded activity is older than a minute: the caller must record a new one.
        package let isStale: Bool
    }

    /// A session ends after 30 minutes without activity, and always after 12 hours.
    private static let isValid = """
        s.seen_at > clock_timestamp() - interval '30 minutes' AND s.created_at > clock_timestamp() - interval '12 hours'
        """

    /// Begins a session, and records it; ended sessions are removed.
    package static func begin(_ digest: [UInt8], of account: String, by actor: OperationActor) -> Query<Void> {
        let sql = """
            WITH gone AS (DELETE FROM console_session s WHERE NOT (\(isValid))),
            begun AS (
                INSERT INTO console_session (token_digest, account_name, source) VALUES ($1, $2, ($3::text[])[2])
                RETURNING account_name)
            SELECT record_operation($3, \(OperationAction.signIn.rawValue)::smallint, '', account_name, NULL, NULL)
            FROM begun
            """
        return Query(PostgresStatement(sql, [.bytes(digest), .text(account), actor.value])) { _ in }
    }

    /// The session of a token; nil: there is none, or it has ended.
    package static func session(_ digest: [UInt8]) -> Query<Session?> {
        let sql = """
            SELECT a.account_name, coalesce(string_agg(g.role::text || g.instance_id, E'\\x01'), ''), a.language,
                a.is_enabled, a.password_hash IS NOT NULL, a.sealed_totp IS NOT NULL, a.revision,
                s.confirmed_at > clock_timestamp() - interval '5 minutes',
                s.seen_at < clock_timestamp() - interval '1 minute'
            FROM console_session s JOIN console_account a USING (account_name)
            LEFT JOIN console_grant g USING (account_name)
            WHERE s.token_digest = $1 AND \(isValid) AND a.is_enabled
            GROUP BY a.account_name, s.token_digest
            """
        return Query(PostgresStatement(sql, [.bytes(digest)])) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Session(
                    account: AccountStore.account(&columns), isConfirmed: columns.next(), isStale: columns.next())
            }
        }
    }

    /// Records activity.
    package static func touch(_ digest: [UInt8]) -> Query<Void> {
        set("seen_at", digest)
    }

    /// Records that the password was entered again.
    package static func confirm(_ digest: [UInt8]) -> Query<Void> {
        set("confirmed_at", digest)
    }

    private static func set(_ column: String, _ digest: [UInt8]) -> Query<Void> {
        let sql = "UPDATE console_session SET \(column) = clock_timestamp() WHERE token_digest = $1"
        return Query(PostgresStatement(sql, [.bytes(digest)])) { _ in }
    }

    /// Signs out, and records it.
    package static func end(_ digest: [UInt8], by actor: OperationActor) -> Query<Void> {
        let sql = """
            WITH ended AS (DELETE FROM console_session WHERE token_digest = $1 RETURNING account_name)
            SELECT record_operation($2, \(OperationAction.signOut.rawValue)::smallint, '', account_name, NULL, NULL)
            FROM ended
            """
        return Query(PostgresStatement(sql, [.bytes(digest), actor.value])) { _ in }
    }
}
