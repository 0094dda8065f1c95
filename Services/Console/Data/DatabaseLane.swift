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
    ///
    /// - Returns: nil when its turn came too late: whoever asked has been waiting long enough.
    func run<Output>(
        _ query: Query<Output>, within limit: Duration, noLaterThan latest: ContinuousClock.Instant
    ) throws(PostgresError) -> Output? {
        guard .now <= latest else { return nil }
        return try connection.run(query, within: limit)
    }

    /// Ends the connection and its thread; call it last.
    func close() {
        connection.close()
        thread.stop()
    }
}
