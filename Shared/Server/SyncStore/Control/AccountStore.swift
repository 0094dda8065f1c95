import PostgreSQL
package import SyncModel

/// Accounts of the console, their passwords and invitations.
package enum AccountStore {
    /// The stored data that a sign-in is checked against.
    package struct Secrets: Sendable {
        package let passwordHash: String?
        package let sealedSecondFactor: [UInt8]?
        package let isEnabled: Bool
    }

    /// Accounts after a name, in the order of names.
    package static func page(after name: String, limit: Int) -> Query<[ConsoleAccount]> {
        let sql = "\(selectAccount) WHERE a.account_name > $1 GROUP BY a.account_name ORDER BY 1 LIMIT $2"
        return Query(PostgresStatement(sql, [.text(name), .int32(Int32(limit))])) { rows throws(PostgresError) in
            try rows.decode(account)
        }
    }

    /// One account.
    package static func account(_ name: String) -> Query<ConsoleAccount?> {
        let sql = "\(selectAccount) WHERE a.account_name = $1 GROUP BY a.account_name"
        return Query(PostgresStatement(sql, [.text(name)])) { rows throws(PostgresError) in try rows.first(account) }
    }

    private static let selectAccount = """
        SELECT a.account_name, coalesce(string_agg(g.role::text || g.instance_id, E'\\x01' ORDER BY g.instance_id), ''),
            a.language, a.is_enabled, a.password_hash IS NOT NULL, a.sealed_totp IS NOT NULL, a.revision
        FROM console_account a LEFT JOIN console_grant g USING (account_name)
        """

    static func account(_ columns: inout PostgresColumns) throws(PostgresError) -> ConsoleAccount {
        try ConsoleAccount(
            name: columns.next(), grants: grants(in: columns.next()), language: columns.next(),
            isEnabled: columns.next(), hasPassword: columns.next(), hasSecondFactor: columns.next(),
            revision: columns.next())
    }

    private static func grants(in text: String) -> [InstanceID: ConsoleRole] {
        var grants: [InstanceID: ConsoleRole] = [:]
        for grant in text.split(separator: "\u{1}") {
            guard let role = Int16(String(grant.prefix(1))).flatMap(ConsoleRole.init) else { continue }
            grants[InstanceID(String(grant.dropFirst()))] = role
        }
        return grants
    }

    /// The data to check a sign-in; nil: there is no such account.
    package static func secrets(of name: String) -> Query<Secrets?> {
        let sql = "SELECT password_hash, sealed_totp, is_enabled FROM console_account WHERE account_name = $1"
        return Query(PostgresStatement(sql, [.text(name)])) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                try Secrets(
                    passwordHash: columns.next(), sealedSecondFactor: columns.next(), isEnabled: columns.next())
            }
        }
    }

    // MARK: Changes

    /// Creates an account without a password, with an invitation to choose one; false: the name is taken.
    package static func create(_ account: ConsoleAccount, invitation digest: [UInt8], by actor: OperationActor)
        -> Query<Bool>
    {
        boolean(
            "SELECT create_account($1, $2, $3, $4, $5)",
            [actor.value, .text(account.name)] + grants(of: account) + [.bytes(digest)])
    }

    /// Changes the roles of an account and enables or disables it, if its revision is still the given one. A disabled
    /// account is signed out at once.
    package static func modify(_ account: ConsoleAccount, by actor: OperationActor) -> Query<Bool> {
        boolean(
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
        boolean("SELECT remove_account($1, $2)", [actor.value, .text(name)])
    }

    /// The language of an account's pages; not recorded.
    package static func setLanguage(_ language: String, of name: String) -> Query<Bool> {
        boolean(
            "UPDATE console_account SET language = $2 WHERE account_name = $1 RETURNING true",
            [.text(name), .text(language)])
    }

    /// Sets the password. Every session of the account except the given one ends, and its invitations.
    package static func setPassword(
        _ hash: String, of name: String, sparing session: [UInt8], by actor: OperationActor
    ) -> Query<Bool> {
        boolean(
            "SELECT set_password($1, $2, $3, $4)",
            [actor.value, .text(name), .text(hash), .bytes(session)])
    }

    /// Sets the second factor, or removes it when no bytes are given.
    ///
    /// - Parameter step: of the code that proved the secret; this code is not accepted again.
    package static func setSecondFactor(
        _ sealed: [UInt8], step: Int64, of name: String, by actor: OperationActor
    ) -> Query<Bool> {
        boolean(
            "SELECT set_second_factor($1, $2, $3, $4)",
            [actor.value, .text(name), .bytes(sealed), .int64(step)])
    }

    /// Uses the code of a step; false: this code or a later one was used before.
    package static func useCode(step: Int64, of name: String) -> Query<Bool> {
        boolean(
            "UPDATE console_account SET totp_step = $2 WHERE account_name = $1 AND totp_step < $2 RETURNING true",
            [.text(name), .int64(step)])
    }

    // MARK: Attempts

    /// Claims an attempt at a name's password before the password is checked. Returns the time to wait first; 0:
    /// continue. See `claim_try` for the free attempts of a source and of all sources.
    ///
    /// - Parameter name: it need not be the name of an account.
    package static func claimTry(at name: String, from source: String) -> Query<Duration> {
        let sql = "SELECT claim_try($1, $2)"
        return Query(PostgresStatement(sql, [.text(name), .text(source)])) { rows throws(PostgresError) in
            .milliseconds(try rows.decode(Int64.self)[0])
        }
    }

    /// Returns an attempt whose password was right.
    ///
    /// - Parameter isKnown: the sign-in is complete: the failures of the source are forgotten.
    package static func forgiveTry(at name: String, from source: String, isKnown: Bool) -> Query<Void> {
        let sql = "SELECT forgive_try($1, $2, $3)"
        return Query(PostgresStatement(sql, [.text(name), .text(source), .bool(isKnown)])) { _ in }
    }

    // MARK: Invitations

    /// Invites an account to choose a password within a day; false: there is no such account.
    package static func invite(_ name: String, digest: [UInt8], by actor: OperationActor) -> Query<Bool> {
        boolean("SELECT invite_account($1, $2, $3)", [actor.value, .text(name), .bytes(digest)])
    }

    /// Invites an administrator: the first one, or one that cannot sign in any more. Earlier such invitations become
    /// invalid. Only the owner of the database may call it.
    package static func inviteAdministrator(digest: [UInt8], by actor: OperationActor) -> Query<Void> {
        Query(PostgresStatement("SELECT invite_administrator($1, $2)", [actor.value, .bytes(digest)])) { _ in }
    }

    /// Whether an enabled administrator of the service has a password.
    package static let hasAdministrator = Query(
        PostgresStatement(
            """
            SELECT EXISTS (
                SELECT FROM console_account a JOIN console_grant g USING (account_name)
                WHERE a.is_enabled AND a.password_hash IS NOT NULL AND g.instance_id = ''
                    AND g.role = 3 /* administrator */)
            """)
    ) { rows throws(PostgresError) in try rows.decode(Bool.self)[0] }

    /// The end of an unused administrator's invitation; nil: there is none.
    package static let administratorInvitedUntil = Query(
        PostgresStatement(
            """
            SELECT floor(extract(epoch FROM max(expires_at)) * 1000)::bigint FROM console_invitation
            WHERE account_name = '' AND expires_at > clock_timestamp()
            """)
    ) { rows throws(PostgresError) -> WallTime? in try rows.first(WallTime?.self) ?? nil }

    /// The account of an invitation; empty: a new administrator, the account is chosen at its use; nil: the invitation
    /// is not valid.
    package static func invited(by digest: [UInt8]) -> Query<String?> {
        let sql = """
            SELECT account_name FROM console_invitation WHERE token_digest = $1 AND expires_at > clock_timestamp()
            """
        return Query(PostgresStatement(sql, [.bytes(digest)])) { rows throws(PostgresError) in
            try rows.first(String.self)
        }
    }

    /// Uses an invitation: its account, or the new administrator's account, gets the password; false: it is not valid
    /// any more.
    package static func use(
        invitation digest: [UInt8], for name: String, hash: String, from source: String
    ) -> Query<Bool> {
        boolean(
            "SELECT use_invitation($1, $2, $3, $4)", [.text(source), .bytes(digest), .text(name), .text(hash)])
    }

    private static func boolean(_ sql: String, _ parameters: [PostgresValue]) -> Query<Bool> {
        Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.first(Bool.self) ?? false }
    }
}
