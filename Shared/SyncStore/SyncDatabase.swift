package import Logging
package import PostgreSQL
package import SyncModel
import Synchronization

/// Opens connections to the service's database and refuses one that cannot keep the promise.
package enum SyncDatabase {
    /// A connection that checks the server each time it connects.
    package static func connection(
        _ configuration: PostgresConfiguration, logger: Logger
    ) -> PostgresConnection {
        PostgresConnection(configuration: configuration, logger: logger) { connection throws(PostgresError) in
            try prepare(connection, configuration)
        }
    }

    /// A connection of the oplog writer that works for one instance at a time: it meets no rows before `bind`.
    package static func operatorConnection(
        _ configuration: PostgresConfiguration, logger: Logger
    ) -> PostgresConnection {
        PostgresConnection(configuration: configuration, logger: logger) { connection throws(PostgresError) in
            try prepare(connection, configuration)
            try connection.execute(script: "SET ROLE mss_operator", within: limit)
        }
    }

    /// From now on an operator's connection meets rows of this instance alone, whatever a statement asks for: the
    /// second belt behind the statements' own conditions (SEC10).
    package static func bind(to instanceID: InstanceID) -> Query<Void> {
        Query(PostgresStatement("SELECT set_config('mss.instance', $1, false)", [.text(instanceID.text)])) { _ in }
    }

    private static let limit = Duration.seconds(5)
    /// The highest epoch that this process has entered, by the database's address.
    private static let epochs = Mutex<[String: Int64]>([:])

    /// Refuses a server that may lose a commit or is not the primary, a schema that differs, and a login that is of no
    /// tier but may do everything (SEC10); enters its incarnation, so that ids never repeat after a failover (design §4).
    private static func prepare(
        _ connection: PostgresConnection, _ configuration: PostgresConfiguration
    ) throws(PostgresError) {
        let settings = PostgresStatement(
            "SELECT current_setting('fsync'), current_setting('synchronous_commit'), pg_is_in_recovery()")
        let row = try connection.run(settings, within: limit).first
        guard row?.bool(2) == false else {
            throw PostgresError(code: .misuse, message: "the server is a standby: name the primary", mayRetry: true)
        }
        guard row?.text(0) == "on", let commit = row?.text(1), commit != "off", commit != "local" else {
            throw PostgresError(
                code: .misuse,
                message: "the server has fsync or synchronous_commit off: it may lose commits; set both on",
                mayRetry: false)
        }
        try MigrationRunner.verify(connection)
        // A superuser counts as a member of every role.
        let mayEverything = PostgresStatement("SELECT pg_has_role('mss_owner', 'MEMBER')")
        guard try connection.run(mayEverything, within: limit).first?.bool(0) == false else {
            throw PostgresError(
                code: .misuse,
                message: "this login may do everything; give the process one of its own (mssctl migrate --logins)",
                mayRetry: false)
        }
        // Every query here is an index probe. Statistics of an empty or fast growing table must not talk the planner
        // into reading it whole, and planning anew each time costs more than the query.
        try connection.execute(
            script: """
                SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
                SET plan_cache_mode = force_generic_plan;
                """, within: limit)
        let entered = try connection.run(PostgresStatement("SELECT enter_incarnation()"), within: limit).first
        try refuse(olderThanEntered: entered?.int64(0) ?? 0, configuration)
    }

    /// An old primary that comes back at its successor's address does not know of it, and would give the same ids once
    /// more: only who has worked with the successor can tell.
    private static func refuse(
        olderThanEntered epoch: Int64, _ configuration: PostgresConfiguration
    ) throws(PostgresError) {
        let address = "\(configuration.host):\(configuration.port)/\(configuration.database)"
        let highest = epochs.withLock { epochs in
            let highest = max(epochs[address] ?? epoch, epoch)
            epochs[address] = highest
            return highest
        }
        guard epoch == highest else {
            throw PostgresError(
                code: .misuse,
                message: "the server is in epoch \(epoch), but epoch \(highest) has been served: it is an old primary",
                mayRetry: true)
        }
    }
}
