import PostgreSQL
package import SyncModel

/// Accounts of the console, their passwords and invitations.
package enum AccountStore {
    /// What a sign-in is checked against.
    package struct Secrets: Sendable {
        package let passwordHash: String?
        package let sealedSecondFactor: [UInt8]?
        package let isEnabled: Bool
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
            hasPassword: row.bool(3), hasSecondFactor: row.bool(4), revision: Int(row.int64(5)))
    }

    /// What a sign-in needs; nil: no such account.
    package static func secrets(of name: String) -> Query<Secrets?> {
        let sql = """
            SELECT coalesce(password_hash, ''), coalesce(sealed_totp, ''), is_enabled FROM console_account WHERE account_name = $1
            """
        return Query(PostgresStatement(sql, [.text(name)])) { rows in
            rows.first.map { row in
                Secrets(
                    passwordHash: row.text(0).isEmpty ? nil : row.text(0),
                    sealedSecondFactor: row.bytes(1).isEmpty ? nil : row.bytes(1), isEnabled: row.bool(2))
            }
        }
    }

    // MARK: Changes

    /// Creates an account without a password, with an invitation to choose one; false: the name is taken.
    package static func create(_ account: ConsoleAccount, invitation digest: [UInt8], by actor: OperationActor)
        -> Query<Bool>
    {
        yes(
            "SELECT create_account($1, $2, $3, $4, $5)",
            [actor.value, .text(account.name)] + grants(of: account) + [.bytes(digest)])
    }

    /// Changes what an account may do, and whether it may come in, if its revision is still the one given. Whoever is
    /// locked out is signed out at once.
    package static func modify(_ account: ConsoleAccount, by actor: OperationActor) -> Query<Bool> {
        yes(
            "SELECT modify_account($1, $2, $3, $4, $5, $6)",
            [actor.value, .text(account.name)] + grants(of: account) + [
                .bool(account.isEnabled), .int64(Int64(account.revision)),
            ])
    }

    private static func grants(of account: ConsoleAccount) -> [PostgresValue] {
        let grants = account.grants.sorted { $0.key.text < $1.key.text }
        return [.textArray(grants.map(\.key.text)), .int16Array(grants.map(\.value.rawValue))]
    }

    /// Removes an account and signs it out; false: there is none.
    package static func remove(_ name: String, by actor: OperationActor) -> Query<Bool> {
        yes("SELECT remove_account($1, $2)", [actor.value, .text(name)])
    }

    /// The language of an account's pages; not recorded.
    package static func setLanguage(_ language: String, of name: String) -> Query<Bool> {
        yes(
            "UPDATE console_account SET language = $2 WHERE account_name = $1 RETURNING true",
            [.text(name), .text(language)])
    }

    /// A new password ends every session of the account but the one given, and its invitations.
    package static func setPassword(
        _ hash: String, of name: String, sparing session: [UInt8], by actor: OperationActor
    ) -> Query<Bool> {
        yes(
            "SELECT set_password($1, $2, $3, $4)",
            [actor.value, .text(name), .text(hash), .bytes(session)])
    }

    /// Sets or, with no bytes, removes the second factor.
    ///
    /// - Parameter step: of the code that showed the secret to be the person's; it is not good again.
    package static func setSecondFactor(
        _ sealed: [UInt8], step: Int64, of name: String, by actor: OperationActor
    ) -> Query<Bool> {
        yes(
            "SELECT set_second_factor($1, $2, $3, $4)",
            [actor.value, .text(name), .bytes(sealed), .int64(step)])
    }

    /// Uses the code of a step; false: that or a later one was used before.
    package static func useCode(step: Int64, of name: String) -> Query<Bool> {
        yes(
            "UPDATE console_account SET totp_step = $2 WHERE account_name = $1 AND totp_step < $2 RETURNING true",
            [.text(name), .int64(step)])
    }

    // MARK: Tries

    /// Takes a try at a name's password before it is looked at; the answer is how long is to be waited first, 0: it may
    /// go on. Of each source some are free, and of all sources together more; see `claim_try`.
    ///
    /// - Parameter name: also of no account.
    package static func claimTry(at name: String, from source: String) -> Query<Duration> {
        let sql = "SELECT claim_try($1, $2)"
        return Query(PostgresStatement(sql, [.text(name), .text(source)])) { .milliseconds($0[0].int64(0)) }
    }

    /// Gives a try back whose password was right.
    ///
    /// - Parameter isKnown: it was all that is asked for: the failures from there are forgotten.
    package static func forgiveTry(at name: String, from source: String, isKnown: Bool) -> Query<Void> {
        let sql = "SELECT forgive_try($1, $2, $3)"
        return Query(PostgresStatement(sql, [.text(name), .text(source), .bool(isKnown)])) { _ in }
    }

    // MARK: Invitations

    /// Invites an account to choose a password within a day; false: there is no such account.
    package static func invite(_ name: String, digest: [UInt8], by actor: OperationActor) -> Query<Bool> {
        yes("SELECT invite_account($1, $2, $3)", [actor.value, .text(name), .bytes(digest)])
    }

    /// Invites an administrator who has no account yet, or no way in any more; earlier such invitations are void. For
    /// the owner of the database alone.
    package static func inviteAdministrator(digest: [UInt8], by actor: OperationActor) -> Query<Void> {
        Query(PostgresStatement("SELECT invite_administrator($1, $2)", [actor.value, .bytes(digest)])) { _ in }
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

    /// Until when an administrator's invitation that nobody has used is good; nil: there is none.
    package static let administratorInvitedUntil = Query(
        PostgresStatement(
            """
            SELECT floor(extract(epoch FROM max(expires_at)) * 1000)::bigint FROM console_invitation
            WHERE account_name = '' AND expires_at > clock_timestamp()
            """)
    ) { rows in rows.first.flatMap { $0.isNull(0) ? nil : WallTime(milliseconds: $0.int64(0)) } }

    /// Whom an invitation is for; empty: an administrator who names the account; nil: it is not good.
    package static func invited(by digest: [UInt8]) -> Query<String?> {
        let sql = """
            SELECT account_name FROM console_invitation WHERE token_digest = $1 AND expires_at > clock_timestamp()
            """
        return Query(PostgresStatement(sql, [.bytes(digest)])) { $0.first?.text(0) }
    }

    /// Uses an invitation up: its account, or the administrator's that it makes, gets the password; false: it is not
    /// good any more.
    package static func use(
        invitation digest: [UInt8], for name: String, hash: String, from source: String
    ) -> Query<Bool> {
        yes(
            "SELECT use_invitation($1, $2, $3, $4)", [.text(source), .bytes(digest), .text(name), .text(hash)])
    }

    private static func yes(_ sql: String, _ parameters: [PostgresValue]) -> Query<Bool> {
        Query(PostgresStatement(sql, parameters)) { $0.first?.bool(0) ?? false }
    }
}
