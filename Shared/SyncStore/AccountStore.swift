import PostgreSQL
package import SyncModel

/// Accounts of the console, their passwords and invitations.
package enum AccountStore {
    /// What a sign-in is checked against.
    package struct Secrets: Sendable {
        package let passwordHash: String?
        package let sealedSecondFactor: [UInt8]?
        package let isEnabled: Bool
        /// Failed too often just now.
        package let isLocked: Bool
    }

    /// Accounts in the order of their names, those after one.
    package static func page(after name: String, limit: Int) -> Query<[ConsoleAccount]> {
        let sql = "\(selectAccount) WHERE a.account_name > $1 GROUP BY a.account_name ORDER BY 1 LIMIT $2"
        return Query(PostgresStatement(sql, [.text(name), .int32(Int32(limit))])) { $0.map(account) }
    }

    /// One account.
    package static func account(_ name: String) -> Query<ConsoleAccount?> {
        let sql = "\(selectAccount) WHERE a.account_name = $1 GROUP BY a.account_name"
        return Query(PostgresStatement(sql, [.text(name)])) { $0.first.map(account) }
    }

    private static let selectAccount = """
        SELECT a.account_name, a.language, a.is_enabled, a.password_hash IS NOT NULL, a.sealed_totp IS NOT NULL,
            a.revision, coalesce(string_agg(g.role::text || g.instance_id, E'\\x01' ORDER BY g.instance_id), '')
        FROM console_account a LEFT JOIN console_grant g USING (account_name)
        """

    static func account(_ row: PostgresRow) -> ConsoleAccount {
        var grants: [InstanceID: ConsoleRole] = [:]
        for grant in row.text(6).split(separator: "\u{1}") {
            guard let role = Int16(String(grant.prefix(1))).flatMap(ConsoleRole.init) else { continue }
            grants[InstanceID(String(grant.dropFirst()))] = role
        }
        return ConsoleAccount(
            name: row.text(0), grants: grants, language: row.text(1), isEnabled: row.bool(2),
            hasPassword: row.bool(3), hasSecondFactor: row.bool(4), revision: Int(row.int32(5)))
    }

    /// What a sign-in needs; nil: no such account.
    package static func secrets(of name: String) -> Query<Secrets?> {
        let sql = """
            SELECT coalesce(password_hash, ''), coalesce(sealed_totp, ''), is_enabled,
                coalesce(locked_until > clock_timestamp(), false)
            FROM console_account WHERE account_name = $1
            """
        return Query(PostgresStatement(sql, [.text(name)])) { rows in
            rows.first.map { row in
                Secrets(
                    passwordHash: row.text(0).isEmpty ? nil : row.text(0),
                    sealedSecondFactor: row.bytes(1).isEmpty ? nil : row.bytes(1), isEnabled: row.bool(2),
                    isLocked: row.bool(3))
            }
        }
    }

    // MARK: Changes

    /// Creates an account without a password; false: the name is taken.
    package static func create(_ account: ConsoleAccount) -> Query<Bool> {
        let sql = """
            WITH created AS (INSERT INTO console_account (account_name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING 1),
            granted AS (
                INSERT INTO console_grant SELECT $1, g.instance_id, g.role
                FROM unnest($2, $3) AS g (instance_id, role) WHERE EXISTS (SELECT FROM created))
            SELECT EXISTS (SELECT FROM created)
            """
        return Query(PostgresStatement(sql, [.text(account.name)] + grants(of: account))) { $0[0].bool(0) }
    }

    /// Changes what an account may do, and whether it may come in, if its revision is still the one given. Whoever is
    /// locked out is signed out at once.
    package static func modify(_ account: ConsoleAccount) -> Query<Bool> {
        let sql = """
            WITH changed AS (
                UPDATE console_account SET is_enabled = $4, revision = revision + 1
                WHERE account_name = $1 AND revision = $5 RETURNING 1
            ), removed AS (
                DELETE FROM console_grant WHERE account_name = $1 AND NOT instance_id = ANY ($2)
                    AND EXISTS (SELECT FROM changed)
            ), granted AS (
                INSERT INTO console_grant SELECT $1, g.instance_id, g.role
                FROM unnest($2, $3) AS g (instance_id, role) WHERE EXISTS (SELECT FROM changed)
                ON CONFLICT (account_name, instance_id) DO UPDATE SET role = excluded.role
            ), ended AS (
                DELETE FROM console_session WHERE account_name = $1 AND NOT $4 AND EXISTS (SELECT FROM changed)
            )
            SELECT EXISTS (SELECT FROM changed)
            """
        let parameters: [PostgresValue] =
            [.text(account.name)] + grants(of: account) + [
                .bool(account.isEnabled), .int32(Int32(clamping: account.revision)),
            ]
        return Query(PostgresStatement(sql, parameters)) { $0[0].bool(0) }
    }

    private static func grants(of account: ConsoleAccount) -> [PostgresValue] {
        let grants = account.grants.sorted { $0.key.text < $1.key.text }
        return [.textArray(grants.map(\.key.text)), .int16Array(grants.map(\.value.rawValue))]
    }

    /// Removes an account and signs it out; false: there is none.
    package static func remove(_ name: String) -> Query<Bool> {
        // An invitation must not be good for somebody else who gets the name later.
        yes(
            """
            WITH gone AS (DELETE FROM console_invitation WHERE account_name = $1)
            DELETE FROM console_account WHERE account_name = $1 RETURNING 1
            """, [.text(name)])
    }

    /// The language of an account's pages.
    package static func setLanguage(_ language: String, of name: String) -> Query<Bool> {
        yes(
            "UPDATE console_account SET language = $2 WHERE account_name = $1 RETURNING 1",
            [.text(name), .text(language)])
    }

    /// A new password ends every session of the account but the one given, and its invitations.
    package static func setPassword(_ hash: String, of name: String, sparing session: [UInt8]) -> Query<Bool> {
        let sql = """
            WITH changed AS (
                UPDATE console_account SET password_hash = $2, failures = 0, locked_until = NULL
                WHERE account_name = $1 RETURNING 1
            ), ended AS (DELETE FROM console_session WHERE account_name = $1 AND token_digest <> $3
            ), used AS (DELETE FROM console_invitation WHERE account_name = $1)
            SELECT 1 FROM changed
            """
        return yes(sql, [.text(name), .text(hash), .bytes(session)])
    }

    /// Sets or, with no bytes, removes the second factor.
    package static func setSecondFactor(_ sealed: [UInt8], of name: String) -> Query<Bool> {
        yes(
            """
            UPDATE console_account SET sealed_totp = nullif($2, ''::bytea), totp_step = 0 WHERE account_name = $1
            RETURNING 1
            """, [.text(name), .bytes(sealed)])
    }

    /// Uses the code of a step; false: that or a later one was used before.
    package static func useCode(step: Int64, of name: String) -> Query<Bool> {
        yes(
            "UPDATE console_account SET totp_step = $2 WHERE account_name = $1 AND totp_step < $2 RETURNING 1",
            [.text(name), .int64(step)])
    }

    // MARK: Tries

    /// A failed sign-in: from the fifth in a row on the account waits, twice as long each time, a quarter of an hour at
    /// the most.
    package static func noteFailure(of name: String) -> Query<Bool> {
        yes(
            """
            UPDATE console_account SET failures = failures + 1, locked_until = CASE WHEN failures >= 4
                THEN clock_timestamp() + least(interval '15 minutes', interval '1 second' * 2 ^ least(failures - 4, 10))
                END
            WHERE account_name = $1 RETURNING 1
            """, [.text(name)])
    }

    /// A sign-in ends the count of failures.
    package static func forgetFailures(of name: String) -> Query<Bool> {
        yes(
            """
            UPDATE console_account SET failures = 0, locked_until = NULL WHERE account_name = $1 AND failures > 0
            RETURNING 1
            """, [.text(name)])
    }

    // MARK: Invitations

    /// Invites an account to choose a password within a day; false: there is no such account.
    package static func invite(_ name: String, digest: [UInt8]) -> Query<Bool> {
        yes(
            """
            WITH gone AS (DELETE FROM console_invitation WHERE account_name = $1 OR expires_at < clock_timestamp())
            INSERT INTO console_invitation SELECT $2, $1, clock_timestamp() + interval '1 day'
            WHERE EXISTS (SELECT FROM console_account WHERE account_name = $1) RETURNING 1
            """, [.text(name), .bytes(digest)])
    }

    /// Invites an administrator who has no account yet, or no way in any more; earlier such invitations are void.
    package static func inviteAdministrator(digest: [UInt8]) -> Query<Void> {
        let sql = """
            WITH gone AS (DELETE FROM console_invitation WHERE account_name = '' OR expires_at < clock_timestamp())
            INSERT INTO console_invitation VALUES ($1, '', clock_timestamp() + interval '1 day')
            """
        return Query(PostgresStatement(sql, [.bytes(digest)])) { _ in }
    }

    /// Whether somebody can sign in who may do everything.
    package static let hasAdministrator = Query(
        PostgresStatement(
            """
            SELECT EXISTS (
                SELECT FROM console_account a JOIN console_grant g USING (account_name)
                WHERE a.is_enabled AND a.password_hash IS NOT NULL AND g.instance_id = '' AND g.role = 3)
            """)
    ) { $0[0].bool(0) }

    /// Whom an invitation is for; empty: an administrator who names the account; nil: it is not good.
    package static func invited(by digest: [UInt8]) -> Query<String?> {
        let sql = """
            SELECT account_name FROM console_invitation WHERE token_digest = $1 AND expires_at > clock_timestamp()
            """
        return Query(PostgresStatement(sql, [.bytes(digest)])) { $0.first?.text(0) }
    }

    /// Uses an invitation up; false: somebody else has.
    package static func use(invitation digest: [UInt8]) -> Query<Bool> {
        yes(
            """
            DELETE FROM console_invitation WHERE token_digest = $1 AND expires_at > clock_timestamp() RETURNING 1
            """, [.bytes(digest)])
    }

    /// Makes the invited administrator's account, or gives the one of that name all rights.
    package static func makeAdministrator(_ name: String) -> Query<Bool> {
        yes(
            """
            WITH account AS (
                INSERT INTO console_account AS a (account_name) VALUES ($1)
                ON CONFLICT (account_name) DO UPDATE SET is_enabled = true, revision = a.revision + 1
                RETURNING account_name)
            INSERT INTO console_grant SELECT account_name, '', 3 FROM account
            ON CONFLICT (account_name, instance_id) DO UPDATE SET role = 3 RETURNING 1
            """, [.text(name)])
    }

    private static func yes(_ sql: String, _ parameters: [PostgresValue]) -> Query<Bool> {
        Query(PostgresStatement(sql, parameters)) { !$0.isEmpty }
    }
}
