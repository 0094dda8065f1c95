package import PostgreSQL

/// The logins of the tiers that open the database, each a member of its tier's role (SEC10).
package enum TierLogins {
    /// The tiers that have a login, which has the tier's name.
    package static let tiers = ["writer", "statistics", "console", "notifier", "relay"]

    private static let limit = Duration.seconds(30)

    /// Creates missing logins and sets these passwords. The server and its log get only the verifier of a password.
    ///
    /// - Parameters:
    ///   - connection: of a role that may create roles, after `MigrationRunner.migrate`.
    ///   - passwords: by tier.
    /// - Throws: `.misuse` when the server has a role with a login's name that is not a member of the tier's role.
    package static func make(
        _ connection: PostgresConnection, passwords: [String: String]
    ) throws(PostgresError) {
        for tier in tiers {
            let exists = PostgresStatement("SELECT to_regrole($1) IS NOT NULL", [.text(tier)])
            if try connection.run(exists, within: limit).first(Bool.self) != true {
                try connection.execute(script: "CREATE ROLE \(tier) LOGIN IN ROLE mss_\(tier)", within: limit)
            }
            let isMember = PostgresStatement(
                "SELECT pg_has_role($1::name, $2::name, 'MEMBER')", [.text(tier), .text("mss_\(tier)")])
            guard try connection.run(isMember, within: limit).first(Bool.self) == true else {
                throw PostgresError(
                    code: .misuse,
                    message: "the server has a role \(tier) that is not this service's: use another server",
                    mayRetry: false)
            }
            guard let password = passwords[tier] else { continue }
            let verifier = try connection.verifier(of: password, for: tier, within: limit)
            try connection.execute(script: "ALTER ROLE \(tier) PASSWORD '\(verifier)'", within: limit)
        }
    }
}
