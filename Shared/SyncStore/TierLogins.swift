package import PostgreSQL

/// The logins of the tiers that open the database, each a member of its tier's role (SEC10).
package enum TierLogins {
    /// Who has one, by its name.
    package static let tiers = ["writer", "statistics", "console", "notifier", "relay"]

    private static let limit = Duration.seconds(30)

    /// Makes what is missing of them, and gives them these passwords, of which the server and its log see the verifier
    /// alone.
    ///
    /// - Parameters:
    ///   - connection: of a role that may create roles, after `MigrationRunner.migrate`.
    ///   - passwords: by tier.
    /// - Throws: `.misuse` when the server has a role of such a name that is not a member of the tier's.
    package static func make(
        _ connection: PostgresConnection, passwords: [String: String]
    ) throws(PostgresError) {
        for tier in tiers {
            let isThere = PostgresStatement("SELECT to_regrole($1) IS NOT NULL", [.text(tier)])
            if try connection.run(isThere, within: limit).first?.bool(0) != true {
                try connection.execute(script: "CREATE ROLE \(tier) LOGIN IN ROLE mss_\(tier)", within: limit)
            }
            let isOurs = PostgresStatement(
                "SELECT pg_has_role($1::name, $2::name, 'MEMBER')", [.text(tier), .text("mss_\(tier)")])
            guard try connection.run(isOurs, within: limit).first?.bool(0) == true else {
                throw PostgresError(
                    code: .misuse,
                    message: "the server has a role \(tier) that is not this service's: give it a server of its own",
                    mayRetry: false)
            }
            guard let password = passwords[tier] else { continue }
            let verifier = try connection.verifier(of: password, for: tier, within: limit)
            try connection.execute(script: "ALTER ROLE \(tier) PASSWORD '\(verifier)'", within: limit)
        }
    }
}
