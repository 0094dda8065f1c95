/// The roles of the tiers in PostgreSQL; the migrations grant their rights (SEC10).
///
/// No role can log in: the operator creates a login for each process that opens the database and makes it a member, so
/// a password is changed by a second login. Roles belong to the whole server; existing ones are used.
package enum TierRoles {
    /// A role, and whether it has the rights of the roles that it is a member of without SET ROLE.
    private struct Role {
        let name: String
        let inherits: Bool
        let memberOf: [String]
    }

    private static let all = [
        // Owns only the table oplog, because only its owner can detach partitions concurrently.
        Role(name: "mss_oplog_keeper", inherits: true, memberOf: []),
        // Owns all other objects; functions that tiers may execute run with its rights.
        Role(name: "mss_owner", inherits: true, memberOf: ["mss_oplog_keeper"]),
        // Executes the queries of operators and backends about one instance; it has no access to rows of other
        // instances.
        Role(name: "mss_operator", inherits: true, memberOf: []),
        // The oplog writer. It uses SET ROLE for the work of these two roles.
        Role(name: "mss_writer", inherits: false, memberOf: ["mss_oplog_keeper", "mss_operator"]),
        // The statistics aggregator.
        Role(name: "mss_statistics", inherits: true, memberOf: []),
        // The console: figures, records and its own accounts, but no oplogs.
        Role(name: "mss_console", inherits: true, memberOf: []),
        // The notifier: devices to wake, but no oplogs.
        Role(name: "mss_notifier", inherits: true, memberOf: []),
        // The relay: device operations, but no oplogs.
        Role(name: "mss_relay", inherits: true, memberOf: []),
    ]

    /// Creates missing roles, memberships and schemas, and revokes all rights of PUBLIC. It runs before every
    /// migration, as a role that owns the database and that may create roles or finds them.
    ///
    /// `mss_owner` gets its rights on `public` without the grant option. With that option it would be the grantor of
    /// the next run, and PostgreSQL refuses a grant option from a role to itself. It owns `delivery`, because a
    /// migration grants rights on this schema.
    ///
    /// The search path is a setting of the database, so every session has it, also one of an operator in psql. A dump
    /// does not contain it: `mssctl migrate` after a restore sets it again.
    ///
    /// With more than one store, each has a schema that belongs to `mss_owner` like `delivery`.
    static func preparation(of stores: StoreLayout) -> String {
        let schemas = stores.count > 1 ? stores.stores.map(\.schema) : []
        let create = schemas.map { "CREATE SCHEMA IF NOT EXISTS \($0) AUTHORIZATION mss_owner;" }
        let every = (["public", "delivery"] + schemas).joined(separator: ", ")
        return """
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
                EXECUTE format('ALTER DATABASE %I SET search_path = public, delivery', current_database());
            END $$;
            SET search_path = public, delivery;
            CREATE SCHEMA IF NOT EXISTS delivery AUTHORIZATION mss_owner;
            \(create.joined(separator: "\n"))
            REVOKE ALL ON SCHEMA \(every) FROM PUBLIC;
            GRANT USAGE, CREATE ON SCHEMA public TO mss_owner;
            GRANT USAGE ON SCHEMA \(every) TO mss_oplog_keeper, mss_operator, mss_writer, mss_statistics,
                mss_console, mss_notifier, mss_relay;
            ALTER DEFAULT PRIVILEGES FOR ROLE mss_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
            """
    }

    /// A migration of another database on the server may create the same role at the same moment.
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
