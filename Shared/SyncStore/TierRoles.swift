/// The roles of the tiers in PostgreSQL, which the migrations give their rights to (SEC10).
///
/// None of them logs in: the operator makes a login for each process that opens the database and makes it a member,
/// so that a password is changed by making a second login. Roles belong to the whole server; what is there is taken.
package enum TierRoles {
    /// A role and whether it has by itself what the roles that it is a member of may do.
    private struct Role {
        let name: String
        let inherits: Bool
        let memberOf: [String]
    }

    private static let all = [
        // Owns the table oplog alone, as only its owner can detach partitions concurrently.
        Role(name: "mss_oplog_keeper", inherits: true, memberOf: []),
        // Owns everything else; functions that tiers may execute run with its rights.
        Role(name: "mss_owner", inherits: true, memberOf: ["mss_oplog_keeper"]),
        // What people and backends ask about one instance; its rows of other instances are not there.
        Role(name: "mss_operator", inherits: true, memberOf: []),
        // The oplog writer. It becomes one of the two by SET ROLE, where it has to do what they are for.
        Role(name: "mss_writer", inherits: false, memberOf: ["mss_oplog_keeper", "mss_operator"]),
        // The statistics aggregator.
        Role(name: "mss_statistics", inherits: true, memberOf: []),
        // The console: figures, records and its own accounts, nothing of the oplog.
        Role(name: "mss_console", inherits: true, memberOf: []),
        // The notifier: whom to wake, nothing of the oplog.
        Role(name: "mss_notifier", inherits: true, memberOf: []),
        // The relay: operations of devices, nothing of the oplog.
        Role(name: "mss_relay", inherits: true, memberOf: []),
    ]

    /// Makes what is missing of roles and memberships, and leaves PUBLIC nothing of the database. To be run before the
    /// first migration by a role that owns the database and may create roles, or finds them made.
    static let preparation = """
        DO $$
        BEGIN
        \(all.map(creation).joined())
            IF NOT pg_has_role(CURRENT_USER, 'mss_owner', 'USAGE') THEN
                EXECUTE format('GRANT mss_owner TO %I', CURRENT_USER);
            END IF;
            EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
            EXECUTE format(
                'GRANT CONNECT ON DATABASE %I TO mss_writer, mss_statistics, mss_console, mss_notifier, mss_relay',
                current_database());
        END $$;
        REVOKE ALL ON SCHEMA public FROM PUBLIC;
        GRANT USAGE, CREATE ON SCHEMA public TO mss_owner WITH GRANT OPTION;
        GRANT USAGE ON SCHEMA public TO mss_oplog_keeper, mss_operator, mss_writer, mss_statistics,
            mss_console, mss_notifier, mss_relay;
        ALTER DEFAULT PRIVILEGES FOR ROLE mss_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
        """

    /// A migration of another database of the server may make the same role at the same moment.
    private static func creation(_ role: Role) -> String {
        let create = """
                BEGIN
                    IF to_regrole('\(role.name)') IS NULL THEN
                        CREATE ROLE \(role.name) NOLOGIN \(role.inherits ? "INHERIT" : "NOINHERIT");
                    END IF;
                EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
                END;

            """
        let grants = role.memberOf.map { group in
            """
                BEGIN
                    IF NOT EXISTS (
                        SELECT FROM pg_auth_members
                        WHERE roleid = to_regrole('\(group)') AND member = to_regrole('\(role.name)')
                    ) THEN
                        GRANT \(group) TO \(role.name);
                    END IF;
                EXCEPTION WHEN unique_violation THEN NULL;
                END;

            """
        }
        return create + grants.joined()
    }
}
