import ConnectionThread
import Logging
import PostgreSQL
import SyncStore

/// One connection to the database and the thread that owns it.
actor DatabaseLane {
    private let thread = ConnectionThread(name: "console-db")
    private let connection: PostgresConnection

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    init(configuration: PostgresConfiguration, logger: Logger) {
        connection = SyncDatabase.connection(configuration, logger: logger)
    }

    /// Runs one query; a connection that was lost is made anew by the next one.
    func run<Output>(_ query: Query<Output>, within limit: Duration) throws(PostgresError) -> Output {
        try connection.run(query, within: limit)
    }

    /// Ends the connection and its thread; call it last.
    func close() {
        connection.close()
        thread.stop()
    }
}
