package import Logging
package import PostgreSQL
package import SyncModel
import Synchronization

/// Opens connections to the service's database and refuses a server that can lose data.
package enum SyncDatabase {
    /// A connection that checks the server each time it connects.
    ///
    /// - Parameter stores: the number of stores that the process works with; nil: it works with any number.
    package static func connection(
        _ configuration: PostgresConfiguration, stores: StoreLayout? = nil, logger: Logger
    ) -> PostgresConnection {
        PostgresConnection(configuration: configuration, logger: logger) { connection throws(PostgresError) in
            try prepare(connection, configuration, stores)
        }
    }

    /// A connection of the oplog writer that works for one instance at a time: before `bind` it reads no rows.
    package static func operatorConnection(
        _ configuration: PostgresConfiguration, stores: StoreLayout?, logger: Logger
    ) -> PostgresConnection {
        PostgresConnection(configuration: configuration, logger: logger) { connection throws(PostgresError) in
            try prepare(connection, configuration, stores)
            try connection.execute(script: "SET ROLE mss_operator", within: limit)
        }
    }

    /// Restricts all further statements of an operator connection to the rows of one instance: the second check after
    /// the statements' own conditions (SEC10).
    package static func bind(to instanceID: InstanceID) -> Query<Void> {
        Query(PostgresStatement("SELECT set_config('mss.instance', $1, false)", [.text(instanceID.text)])) { _ in }
    }

    /// The planner's settings on each connection. Every query here is an index probe. Statistics of an empty or fast
    /// growing table must not make the planner read it whole, and a new plan for each call costs more than the query.
    package static let plannerSettings = """
        SET jit = off; SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;
        SET plan_cache_mode = force_generic_plan;
        """

    private static let limit = Duration.seconds(5)
    /// The highest epoch that this process has entered, by the database's address.
    private static let epochs = Mutex<[String: Int64]>([:])

    /// Refuses a server that may lose a commit or is not the primary, a different schema or number of stores, and a
    /// login with all rights (SEC10). Then enters the database epoch, so that ids never repeat after a failover
    /// (Design.md#failover-and-epochs).
    private static func prepare(
        _ connection: PostgresConnection, _ configuration: PostgresConfiguration, _ stores: StoreLayout?
    ) throws(PostgresError) {
        let settings = PostgresStatement(
            "SELECT pg_is_in_recovery(), current_setting('fsync'), current_setting('synchronous_commit')")
        let found = try connection.run(settings, within: limit).first { columns throws(PostgresError) in
            (
                isStandby: try columns.next(Bool.self), fsync: try columns.next(String.self),
                commit: try columns.next(String.self)
            )
        }
        guard let found, !found.isStandby else {
            throw PostgresError(code: .misuse, message: "the server is a standby: name the primary", mayRetry: true)
        }
        guard found.fsync == "on", found.commit != "off", found.commit != "local" else {
            throw PostgresError(
                code: .misuse,
                message: "the server has fsync or synchronous_commit off: it may lose commits; set both on",
                mayRetry: false)
        }
        try MigrationRunner.verify(connection, stores: stores)
        // A superuser counts as a member of every role.
        let hasAllRights = PostgresStatement("SELECT pg_has_role('mss_owner', 'MEMBER')")
        guard try connection.run(hasAllRights, within: limit).first(Bool.self) == false else {
            throw PostgresError(
                code: .misuse,
                message: "this login may do everything; give the process one of its own (mssctl migrate --logins)",
                mayRetry: false)
        }
        try connection.execute(script: plannerSettings, within: limit)
        let entered = try connection.run(PostgresStatement("SELECT enter_incarnation()"), within: limit)
        try refuse(olderThanEntered: try entered.first(Int64.self) ?? 0, configuration)
    }

    /// An old primary that returns at its successor's address does not know the successor, and would give the same ids
    /// again. Only a process that has worked with the successor can detect it.
    private static func refuse(
        olderThanEntered epoch: Int64, _ configuration: PostgresConfiguration
    ) throws(PostgresError) {
        let address = "\(configuration.servers)/\(configuration.database)"
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
